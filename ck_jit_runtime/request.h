// SPDX-License-Identifier: MIT
//
// One blob for the running device: all that is needed to find, check and compile it.
#pragma once

#include "blob.h"
#include "entry_file.h"

#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

struct Request {
    Blob blob;
    std::string stem;
    std::string input_key;
    Expected expected;

    std::string key(const std::string &compiler_key) const { return input_key + compiler_key; }
    std::string entry_name(const std::string &compiler_key) const { return stem + "." + key(compiler_key); }
};

// Throws Failure when there is no device to compile for.
Request make_request(const Blob &blob);

} // namespace ck_jit
