// Debian's archives of libhdf5, libpng and others are compiled for executables: they address stdin, stdout and stderr
// by relocations that a shared library cannot have. The linker's --wrap replaces the three names by these copies of the
// pointers; everything else in those archives links as it is.
#include <cstdio>

extern "C" {
extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;

// Runs before all other initialisation of this library: priorities up to 100 are reserved.
__attribute__((constructor(101))) static void takeStandardStreams() {
  __wrap_stdin = __real_stdin, __wrap_stdout = __real_stdout, __wrap_stderr = __real_stderr;
}
}
