// Serves a model over HTTP until standard input ends:
//     c++ serve.cpp $(pkg-config --cflags --libs dtrain) -o serve
//     ./serve RUN_DIR [PORT]
//     curl -d '{"instances": [[0.5, 0.25]]}' http://127.0.0.1:PORT/v1/models/default:predict
#include <dtrain/dtrain.h>

#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

// Whether standard input has ended; waits half a second at most.
static bool ended()
{
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    char byte;
    return poll(&input, 1, 500) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(int argc, char **argv)
{
    dt_server_options options = DT_SERVER_OPTIONS_INIT;
    dt_server *server = nullptr;
    if (argc < 2) {
        std::cerr << "usage: serve MODEL|RUN_DIR [PORT]\n";
        return 2;
    }
    options.port = argc > 2 ? std::atoi(argv[2]) : 0; // 0: any that is free
    if (dt_status status = dt_server_start(argv[1], &options, &server)) {
        std::cerr << dt_error_text() << '\n';
        return dt_status_exit_code(status);
    }
    std::cout << "serving at port " << dt_server_port(server) << std::endl;
    while (!ended())
        dt_server_poll(server); // takes up new versions of the model
    dt_server_stop(server);
}
