// SPDX-License-Identifier: MIT
//
// Why something could not be done, and the text that ck_jit_last_error() returns.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

// Thrown inside the runtime only; resolve() and the C functions catch it. Its text is one line for the
// user.
class Failure : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::string errno_text(int error);

// The calling thread's error text. Bytes beyond the buffer are cut.
void set_last_error(const std::string &text) noexcept;
std::size_t copy_last_error(char *buffer, std::size_t size) noexcept;

} // namespace ck_jit
