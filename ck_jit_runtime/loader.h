// SPDX-License-Identifier: MIT
//
// From a verified library to function pointers.
#pragma once

#include "blob.h"
#include "cache.h"

namespace [[gnu::visibility("hidden")]] ck_jit {

// Loads the library, RTLD_NOW | RTLD_LOCAL, for the rest of the process. Throws Failure.
// A blob of the manifest: the slots of all its instances become ready, and the result is null.
// Any other blob: an array indexed by kernel template, with the first function that starts with each
// one's prefix.
void *const *load(const Blob &blob, const Library &library);

} // namespace ck_jit
