// SPDX-License-Identifier: MIT
//
// Where compiled blobs are kept: read-only tiers (CK_JIT_CACHE_PATH) and the writable cache directory.
#pragma once

#include "node_scratch.h"
#include "request.h"

#include <memory>
#include <optional>
#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

// A verified shared object, ready for dlopen.
struct Library {
    std::string path;
    std::vector<std::string> functions; // its exported functions; only for a blob that is not in the manifest
    std::shared_ptr<WorkDir>
        owner; // keeps an own copy (one that is in no cache directory) until it is loaded
};

// From the tiers: an entry for the same input, whatever compiler made it. Whoever listed the directory
// vouches for it, and the machine that uses a pack often has no compiler.
std::optional<Library> find_in_tiers(const Request &request);

enum class BadEntry { ignore, set_aside };

// From the writable cache: an entry for this key. An empty `compiler_key` (no compiler, or compiling is
// off) takes any entry for the same input. Throws Failure when the directory cannot be trusted.
// BadEntry::set_aside moves whatever is no good under that name into <cache>/bad, and notes why. Only the
// holder of the entry's lock may ask for that: another process could just have put a good one there.
std::optional<Library> find_in_cache(const Request &request, const std::string &compiler_key, BadEntry bad);

// Puts the compiler's output into the writable cache: complete under its final name, or not at all.
// Throws Failure.
void publish(const Request &request, const std::string &compiler_key, std::string_view bytes);

// The library without any cache directory.
std::vector<std::string> named_functions(const Request &request, std::string_view bytes);

} // namespace ck_jit
