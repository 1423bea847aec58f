#include "base/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/clones.h"

/* Names and places of the files that linking with the libraries would use; a build finds them. */
static const char *const FILES[] = {
#include "base/library_files.h"
};

/* RTLD_DEEPBIND searches the library for each symbol before all libraries of the program. The
 * address sanitizer does not support it. */
#if defined(RTLD_DEEPBIND) && !DT__ASAN
enum { MODE = RTLD_LAZY | RTLD_LOCAL, MODE_ALONE = MODE | RTLD_DEEPBIND };
#else
enum { MODE = RTLD_LAZY | RTLD_LOCAL, MODE_ALONE = MODE };
#endif

/* Returns true if the file is named lib<name>*.so*, in any directory. */
static bool is_of_library(const char *file, const char *name)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;
    return !strncmp(base, "lib", 3) && !strncmp(base + 3, name, strlen(name));
}

static dt_status library_open(struct dt__library *library)
{
    char why[DT_ERROR_MAX] = "it was not there when this program was built";
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES && !library->handle; i++) {
        if (!is_of_library(FILES[i], library->name)) continue;
        library->handle = dlopen(FILES[i], library->alone ? MODE_ALONE : MODE);
        if (!library->handle) snprintf(why, sizeof why, "%s", dlerror());
    }
    return library->handle ? DT_OK : dt_fail(DT_EIO, "cannot load lib%s: %s", library->name, why);
}

static dt_status library_fill(struct dt__library *library)
{
    for (size_t i = 0; i < library->count; i++) {
        const void *symbol = dlsym(library->handle, library->symbols[i]);
        if (!symbol)
            return dt_fail(DT_EIO, "lib%s is not the version that this program was built with: %s",
                           library->name, dlerror());
        memcpy((char *)library->table + i * sizeof symbol, &symbol, sizeof symbol);
    }
    return DT_OK;
}

static void library_close(struct dt__library *library)
{
    if (library->handle) dlclose(library->handle);
    library->handle = NULL;
}

dt_status dt__library_load(struct dt__library *library)
{
    dt_status status = DT_OK;
    pthread_mutex_lock(&library->lock);
    if (!library->handle) {
        status = library_open(library);
        if (!status) status = library_fill(library);
        if (status) library_close(library);
    }
    pthread_mutex_unlock(&library->lock);
    return status;
}

void dt__library_unload(struct dt__library *library)
{
    pthread_mutex_lock(&library->lock);
    library_close(library);
    pthread_mutex_unlock(&library->lock);
}
