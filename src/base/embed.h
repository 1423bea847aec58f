/* DT__EMBED(name, path): a file of the sources as a text of the program, extern const char name[].
 * What is no C (a page, a shell's script) stands in a file that its own tools can read. */
#ifndef BASE_EMBED_H
#define BASE_EMBED_H

#define DT__EMBED(name, path)                                                                      \
    __asm__(".section .rodata\n.global " #name "\n" #name ":\n.incbin \"" path                     \
            "\"\n.byte 0\n.previous\n");                                                           \
    extern const char name[]

#endif
