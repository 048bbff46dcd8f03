// SPDX-License-Identifier: MIT
//
// Brings blobs in: the cold half of a call.
#pragma once

#include "blob.h"

#include <string>
#include <vector>

namespace [[gnu::visibility("hidden")]] ck_jit {

enum class Aim { load, compile_only };

// Brings in every blob of the list (each name once): those in a cache directory first, in this thread;
// then the others, compiled in parallel. "" when all are there, else why the first of the list that
// failed is not.
std::string bring_in(const std::vector<Blob> &blobs, Aim aim);

} // namespace ck_jit
