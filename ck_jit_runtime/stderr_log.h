// SPDX-License-Identifier: MIT
//
// Lines on stderr. Each goes out in one write, so that lines of many threads and processes do not mix.
#pragma once

#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

void log_line(const std::string &text);    // always
void log_verbose(const std::string &text); // with CK_JIT_VERBOSE=1

// The line of a compile. On a terminal it appears when the compile starts and is overwritten when it
// ends; elsewhere it is written once, at the end.
void log_compile_started(const std::string &blob);
void log_compile_done(const std::string &blob, double seconds);

} // namespace ck_jit
