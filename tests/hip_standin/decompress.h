#pragma once

#include "byte_view.h"

#include <vector>

namespace hip_standin {

// What `clang --offload-compress` makes of a bundle: a header and one zlib or zstd stream.
constexpr char compressed_bundle_magic[] = "CCOB";

// The whole size, header included. Throws std::runtime_error for version 1, whose header does not say it.
size_t compressed_bundle_size(ByteView bundle);

// The bundle in it. zlib and zstd are loaded when they are needed, so that only users of compression must
// have them.
std::vector<uint8_t> decompress_bundle(ByteView bundle);

} // namespace hip_standin
