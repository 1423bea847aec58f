/* For libraries that are preloaded into dtrain: which calls are the program's own, and from where they come. */
#ifndef E2E_PROGRAM_H
#define E2E_PROGRAM_H

#include <execinfo.h>
#include <link.h>
#include <stdint.h>

static struct {
    uintptr_t base, begin, end; /* where the program lies; its code */
} program;

/* The first object is the program itself. */
static int find_program(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        program.base = info->dlpi_addr;
        program.begin = info->dlpi_addr + header->p_vaddr;
        program.end = program.begin + header->p_memsz;
    }
    return 1;
}

static int is_in_program(const void *address)
{
    return (uintptr_t)address >= program.begin && (uintptr_t)address < program.end;
}

/* Returns "RANK" or "SIZE" as set by Open MPI or MPICH; NULL: started without either. */
__attribute__((unused)) static const char *launched_as(const char *what)
{
    const int rank = !strcmp(what, "RANK");
    const char *text = getenv(rank ? "OMPI_COMM_WORLD_RANK" : "OMPI_COMM_WORLD_SIZE");
    return text ? text : getenv(rank ? "PMI_RANK" : "PMI_SIZE");
}

/* Returns a hash (FNV-1a) of at most `most` (up to 32) calls in the program that led here. */
__attribute__((always_inline)) static inline uint64_t hash_stack(int most)
{
    void *frames[32];
    uint64_t hash = 14695981039346656037u;
    for (int i = 0, depth = backtrace(frames, most); i < depth; i++)
        if (is_in_program(frames[i])) hash = (hash ^ ((uintptr_t)frames[i] - program.base)) * 1099511628211u;
    return hash;
}

#endif
