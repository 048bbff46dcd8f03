// SPDX-License-Identifier: MIT
//
// Which hipcc compiles, and its identity as a part of the cache key.
#pragma once

#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

struct Compiler {
    std::string hipcc;
    std::string key; // second half of the key of every entry it makes
};

// The first hipcc found, and its identity, worked out once per process. It is remembered in the cache
// directory for as long as size, modification time and inode of its files stay. Throws Failure that says
// where it looked.
const Compiler &compiler();

} // namespace ck_jit
