// SPDX-License-Identifier: MIT
#include "stderr_log.h"

#include "environment.h"
#include "file_io.h"

#include <cstdio>
#include <unistd.h>

namespace ck_jit {

namespace {

void write_text(const std::string &text) {
    // Not through stdio: its lock may be held by a thread that a fork left behind. A lost message is no
    // failure.
    if (!write_all(STDERR_FILENO, text))
        return;
}

std::string compile_line(const std::string &blob) {
    return "[CK-JIT] pid " + std::to_string(::getpid()) + ": compiling " + blob;
}

} // namespace

void log_line(const std::string &text) { write_text("[CK-JIT] " + text + "\n"); }

void log_verbose(const std::string &text) {
    if (config().verbose)
        log_line(text);
}

void log_compile_started(const std::string &blob) {
    if (::isatty(STDERR_FILENO))
        write_text(compile_line(blob) + " ...\r");
}

void log_compile_done(const std::string &blob, double seconds) {
    char took[32];
    std::snprintf(took, sizeof took, ", %.1f s", seconds);
    write_text(compile_line(blob) + took + "\n");
}

} // namespace ck_jit
