// SPDX-License-Identifier: MIT
//
// CK_JIT_RECORD: the names of the blobs a run used, one a line, for `ck-post-build prebuild --from FILE`.
#pragma once

#include <string>

namespace [[gnu::visibility("hidden")]] ck_jit {

// To be called when a blob is loaded, which is once per process.
void record_use(const std::string &blob);

} // namespace ck_jit
