// SPDX-License-Identifier: MIT
//
// The file of a cache entry: a shared object and a trailer of 128 bytes that binds it to its key and its
// contents. Loaders ignore what follows the last section.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("hidden")]] ck_jit {

// What a compiled blob must contain.
struct Expected {
    std::string arch;
    std::vector<std::string> symbols;  // all of these functions
    std::vector<std::string> prefixes; // and, unless empty, a function that starts with one of these
};

// Throws Failure with the reason when the compiler's output is not such a shared object.
void verify_output(std::string_view bytes, const Expected &expected);

// The trailer for that output. `key` is the whole key, 64 hexadecimal digits.
std::string make_trailer(std::string_view bytes, std::string_view key);

// Throws Failure with the reason unless these are all the bytes of an undamaged entry for that key.
void verify_entry(std::string_view bytes, std::string_view key, const Expected &expected);

} // namespace ck_jit
