#pragma once

#include "byte_view.h"

#include <string>
#include <utility>
#include <vector>

namespace hip_standin {

// A decoded MessagePack value, as far as AMDGPU metadata uses the format: no floats, no extensions.
struct Msgpack {
    enum class Type { nil, boolean, integer, text, array, map };

    Type type = Type::nil;
    int64_t integer = 0; // of a boolean too
    std::string text;
    std::vector<Msgpack> items;                       // of an array
    std::vector<std::pair<std::string, Msgpack>> map; // in the order of the file

    // The value under a key of a map, or nullptr.
    const Msgpack *find(const char *key) const;
    int64_t integer_at(const char *key, int64_t otherwise) const;
    std::string text_at(const char *key) const;
};

// Throws std::runtime_error for anything that is not one whole value.
Msgpack parse_msgpack(ByteView bytes);

} // namespace hip_standin
