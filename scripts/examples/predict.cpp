// Answers one row of numbers from the command line with a model that dtrain has trained:
//     c++ predict.cpp $(pkg-config --cflags --libs dtrain) -o predict
//     ./predict RUN_DIR 0.5 0.25 ...
#include <dtrain/dtrain.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

int main(int argc, char **argv)
{
    dt_predictor *opened = nullptr;
    if (argc < 3) {
        std::cerr << "usage: predict MODEL|RUN_DIR NUMBER...\n";
        return 2;
    }
    if (dt_predictor_open(argv[1], &opened)) {
        std::cerr << dt_error_text() << '\n';
        return 1;
    }
    std::unique_ptr<dt_predictor, void (*)(dt_predictor *)> predictor(opened, dt_predictor_close);
    std::vector<float> row, answer(static_cast<std::size_t>(dt_predictor_width(opened)));
    for (int i = 2; i < argc; i++)
        row.push_back(std::strtof(argv[i], nullptr));
    if (static_cast<int>(row.size()) != dt_predictor_features(opened)) {
        std::cerr << "the model takes " << dt_predictor_features(opened) << " numbers\n";
        return 2;
    }
    if (dt_predictor_rows(opened, row.data(), 1, answer.data(), nullptr)) {
        std::cerr << dt_error_text() << '\n';
        return 1;
    }
    for (float value : answer)
        std::cout << value << '\n';
}
