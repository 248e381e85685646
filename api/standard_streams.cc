// Debian's archives of libhdf5, libpng and others are compiled for executables: they reach for stdin, stdout and stderr
// as if these stood in the same file, which a shared library cannot grant. The linker's --wrap gives them these copies
// of the three pointers instead; everything else in those archives is fine where it is.
#include <cstdio>

extern "C" {
extern FILE *__real_stdin, *__real_stdout, *__real_stderr;
FILE *__wrap_stdin, *__wrap_stdout, *__wrap_stderr;

// Before any other initialisation of this library: 101 is the first that is free.
__attribute__((constructor(101))) static void takeStandardStreams() {
  __wrap_stdin = __real_stdin, __wrap_stdout = __real_stdout, __wrap_stderr = __real_stderr;
}
}
