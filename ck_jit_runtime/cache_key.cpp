// SPDX-License-Identifier: MIT
#include "cache_key.h"

#include "sha256.h"

namespace ck_jit {

namespace {
// File names end at 255 bytes; key, dots and extension take 68 of them, a set-aside file some more.
constexpr std::size_t kMaxStem = 160;
} // namespace

std::string netstrings(const std::vector<std::string_view> &texts) {
    std::string joined;
    for (const std::string_view text : texts)
        joined.append(std::to_string(text.size())).append(":").append(text).append(",");
    return joined;
}

std::string input_key(std::string_view name, std::string_view source_hash, std::string_view headers_hash,
                      std::string_view flags, std::string_view arch) {
    return sha256_hex(netstrings({"ck-jit-input-1", name, source_hash, headers_hash, flags, arch}))
        .substr(0, kKeyPartDigits);
}

std::string compiler_key(std::string_view compiler_identity, std::string_view script_hash) {
    return sha256_hex(netstrings({"ck-jit-compiler-1", compiler_identity, script_hash}))
        .substr(0, kKeyPartDigits);
}

std::string entry_stem(std::string_view blob_name) {
    std::string stem(blob_name);
    for (char &c : stem)
        if (c == '/' || c == '\\')
            c = '_';
    for (const std::string_view extension : {".cpp", ".cu"})
        if (stem.size() > extension.size() &&
            stem.compare(stem.size() - extension.size(), extension.npos, extension) == 0) {
            stem.resize(stem.size() - extension.size());
            break;
        }
    if (stem[0] == '.')
        stem[0] = '_'; // names with a dot are the runtime's own
    return stem.substr(0, kMaxStem);
}

} // namespace ck_jit
