/* DT__EMBED(name, path) embeds a source file in the program as text, extern const char name[]. Text
 * that is not C (a page, a shell script) is a separate file, which its own tools can read. */
#ifndef BASE_EMBED_H
#define BASE_EMBED_H

#define DT__EMBED(name, path)                                                                      \
    __asm__(".section .rodata\n.global " #name "\n" #name ":\n.incbin \"" path                     \
            "\"\n.byte 0\n.previous\n");                                                           \
    extern const char name[]

#endif
