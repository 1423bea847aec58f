/* Any bytes as the table of contents that the child sends of a checkpoint or a model, which may be a
 * hostile file's doing: believed where it holds, else refused with a message, never a read beyond. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hdf5/guard.h"
#include "state/checkpoint.h"
#include "state/model_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* No child: what needs one fails, as if it had died. */
dt_status dt__h5_guard_open(int fd, int memory, bool stay, int *out_socket)
{
    (void)fd, (void)memory, (void)stay, (void)out_socket;
    return dt_fail(DT_EIO, "no child");
}

bool dt__h5_guard_ask(int socket, const struct dt__h5_request *request,
                      struct dt__h5_answer *answer)
{
    (void)socket, (void)request, (void)answer;
    return false;
}

void dt__h5_guard_start(void)
{
}

/* A file of zeros that arrays may lie in. */
static const char *zeros(void)
{
    static char path[64];
    if (*path) return path;
    int fd = memfd_create("zeros", 0);
    if (fd < 0 || ftruncate(fd, 1 << 16)) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* fuzz_checkpoint --table FILE: the table of a sound file, to begin with. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    bool stays;
    struct dt_text table = {0};
    struct dt__h5_inside *inside;
    if (*argc != 3 || strcmp((*argv)[1], "--table")) return 0;
    if (dt__h5_inside_open((*argv)[2], &table, &inside, &stays)) exit(1);
    fwrite(table.data, 1, table.length, stdout);
    exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt__h5_file *file;
    struct dt_checkpoint checkpoint;
    struct dt_export model;
    if (dt__h5_open_table(zeros(), data, size, &file)) return 0;
    if (!dt__checkpoint_get(file, &checkpoint)) dt_checkpoint_free(&checkpoint);
    if (!dt__export_get(file, &model, NULL)) dt_export_free(&model);
    dt__h5_close(file);
    return 0;
}
