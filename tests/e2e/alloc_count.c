/* Preloaded into a program, counts its calls that allocate, by the object that calls: the program, a
 * library. At exit, lines "COUNT OBJECT" go to $ALLOC_COUNT.PID. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

enum { OBJECTS = 512, PAGES = 4096, PAGE = 4096 };

static struct {
    _Atomic(const void *) base; /* where the object is loaded; NULL: free */
    _Atomic long count;
    char name[256]; /* copied: the object may be gone at exit */
} objects[OBJECTS];

/* The object last found in a page of code, as page * OBJECTS + object: dladdr() reads all symbols of one. */
static _Atomic(uint64_t) known[PAGES];

static int object_of(const void *caller)
{
    Dl_info info;
    if (!dladdr(caller, &info)) return -1;
    for (int i = 0; i < OBJECTS; i++) {
        const void *none = NULL;
        if (atomic_compare_exchange_strong(&objects[i].base, &none, (const void *)info.dli_fbase))
            snprintf(objects[i].name, sizeof objects[i].name, "%s", info.dli_fname);
        if (atomic_load(&objects[i].base) == info.dli_fbase) return i;
    }
    return -1;
}

static void count(const void *caller)
{
    uint64_t page = (uintptr_t)caller / PAGE, found = atomic_load(&known[page % PAGES]);
    int object = found / OBJECTS == page ? (int)(found % OBJECTS) : object_of(caller);
    if (object < 0) return;
    atomic_store(&known[page % PAGES], page * OBJECTS + (uint64_t)object);
    atomic_fetch_add(&objects[object].count, 1);
}

#define COUNT() count(__builtin_return_address(0))

void *malloc(size_t size)
{
    COUNT();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    COUNT();
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    COUNT();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    COUNT();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    COUNT();
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    COUNT();
    *out = __libc_memalign(alignment, size);
    return *out ? 0 : ENOMEM;
}

__attribute__((destructor)) static void report(void)
{
    char path[4096];
    const char *prefix = getenv("ALLOC_COUNT");
    if (!prefix) return;
    snprintf(path, sizeof path, "%s.%d", prefix, (int)getpid());
    FILE *file = fopen(path, "w");
    if (!file) return;
    for (int i = 0; i < OBJECTS && atomic_load(&objects[i].base); i++)
        fprintf(file, "%ld %s\n", atomic_load(&objects[i].count), objects[i].name);
    fclose(file);
}
