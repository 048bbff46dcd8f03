// SPDX-License-Identifier: MIT
//
// What a compiled blob depends on, as the name of its cache entry. docs/runtime.md defines every byte,
// because the Python tool computes the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("hidden")]] ck_jit {

// Each text as "<length in decimal>:<bytes>,", one after another: no two different lists give the same
// bytes.
std::string netstrings(const std::vector<std::string_view> &texts);

constexpr std::size_t kKeyPartDigits = 32; // hexadecimal digits of each half of a key

// First half: what is compiled. "" for a hash that is not known.
std::string input_key(std::string_view name, std::string_view source_hash, std::string_view headers_hash,
                      std::string_view flags, std::string_view arch);
// Second half: by what it is compiled.
std::string compiler_key(std::string_view compiler_identity, std::string_view script_hash);

// The blob's name as the start of a file name: path separators replaced, source extension removed, cut to
// length.
std::string entry_stem(std::string_view blob_name);

} // namespace ck_jit
