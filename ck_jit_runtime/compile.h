// SPDX-License-Identifier: MIT
//
// Makes a blob's library: one run of ck_jit_compile.sh, under the entry's lock, then into the cache.
#pragma once

#include "cache.h"

namespace [[gnu::visibility("hidden")]] ck_jit {

// From a cache directory. Nothing when it has to be compiled.
std::optional<Library> find_library(const Request &request);

// Waits for whoever is compiling it, or compiles it. Throws Failure.
Library make_library(const Request &request);

} // namespace ck_jit
