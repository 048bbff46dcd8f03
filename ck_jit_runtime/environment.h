// SPDX-License-Identifier: MIT
//
// What the environment says. Read once, at the first cold call.
#pragma once

#include <string>
#include <vector>

namespace [[gnu::visibility("hidden")]] ck_jit {

struct Config {
    bool verbose;                   // CK_JIT_VERBOSE=1
    bool compile;                   // CK_JIT_COMPILE, false for 0
    std::string root;               // CK_JIT_ROOT, else the built-in one; absolute
    std::string script;             // <root>/ck_jit_compile.sh
    std::string default_cache_dir;  // CK_JIT_CACHE_DIR, else the user's cache, else <temp>/<name>-<uid>
    std::vector<std::string> tiers; // CK_JIT_CACHE_PATH, split at colons
    std::string lock_dir;           // CK_JIT_LOCK_DIR, else $XDG_RUNTIME_DIR/ck-jit; "": <scratch>/lock
    std::string scratch_dir;        // <temp>/ck-jit-<uid>: node-local, private
    std::string temp_dir;           // TMPDIR, else /tmp
    std::string arch;               // CK_JIT_ARCH; "": ask the device
    std::string blob_manifest;      // CK_JIT_MANIFEST
    std::string record_file;        // CK_JIT_RECORD
    std::vector<std::string> hipcc_candidates; // where to look for hipcc, best first
    double compile_timeout;                    // CK_JIT_COMPILE_TIMEOUT, seconds
    unsigned jobs;                             // CK_JIT_JOBS
};

const Config &config();

// The writable cache directory in force: Config::default_cache_dir until ck_jit_set_cache_dir() changes
// it.
std::string cache_dir();
void set_cache_dir(const std::string &path);

} // namespace ck_jit
