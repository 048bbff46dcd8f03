// SPDX-License-Identifier: MIT
#include "failure.h"

#include <algorithm>
#include <cstring>

namespace ck_jit {

namespace {
// Plain bytes, not a std::string: a thread_local with a destructor would keep the library from being unloaded
// for as long as any thread that once failed lives.
constexpr std::size_t kErrorBytes = 4096;
thread_local char last_error[kErrorBytes];
} // namespace

std::string errno_text(int error) {
    char buffer[256];
    return strerror_r(error, buffer, sizeof buffer);
}

void set_last_error(const std::string &text) noexcept {
    const std::size_t length = std::min(text.size(), kErrorBytes - 1);
    std::memcpy(last_error, text.data(), length);
    last_error[length] = '\0';
}

std::size_t copy_last_error(char *buffer, std::size_t size) noexcept {
    const std::size_t length = std::strlen(last_error);
    if (buffer && size > 0) {
        const std::size_t copied = std::min(length, size - 1);
        std::memcpy(buffer, last_error, copied);
        buffer[copied] = '\0';
    }
    return length;
}

} // namespace ck_jit
