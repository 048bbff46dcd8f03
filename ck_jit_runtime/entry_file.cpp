// SPDX-License-Identifier: MIT
#include "entry_file.h"

#include "elf_file.h"
#include "failure.h"
#include "offload_bundle.h"
#include "sha256.h"

#include <algorithm>
#include <cstdint>

namespace ck_jit {

namespace {

constexpr std::string_view kStart = "CK-JIT-ENTRY-001";
constexpr std::string_view kEnd = "CK-JIT-ENTRY-END";
constexpr std::size_t kTrailerBytes = 128;
constexpr std::size_t kBuildIdBytes = 20;

std::string little_endian(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i)
        text += static_cast<char>(value >> (8 * i));
    return text;
}

int hex_digit(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

std::string unhex(std::string_view digits) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
        bytes += static_cast<char>(hex_digit(digits[i]) * 16 + hex_digit(digits[i + 1]));
    return bytes;
}

} // namespace

void verify_output(std::string_view bytes, const Expected &expected) {
    const ElfFile elf(bytes);
    std::vector<std::string_view> functions = elf.functions();
    std::sort(functions.begin(), functions.end());
    for (const std::string &symbol : expected.symbols)
        if (!std::binary_search(functions.begin(), functions.end(), symbol))
            throw Failure("it does not define the function " + symbol);
    const auto starts_with = [](std::string_view name, std::string_view prefix) {
        return name.substr(0, prefix.size()) == prefix;
    };
    const bool found = std::any_of(functions.begin(), functions.end(), [&](std::string_view name) {
        return std::any_of(expected.prefixes.begin(), expected.prefixes.end(),
                           [&](const std::string &prefix) { return starts_with(name, prefix); });
    });
    if (!expected.prefixes.empty() && !found)
        throw Failure("it defines no function that starts with " + expected.prefixes.front() +
                      (expected.prefixes.size() > 1 ? " or another kernel's prefix" : ""));
    check_device_code(elf.section(".hip_fatbin"), expected.arch);
}

std::string make_trailer(std::string_view bytes, std::string_view key) {
    const Sha256::Digest digest = sha256(bytes);
    std::string build_id(ElfFile(bytes).build_id().substr(0, kBuildIdBytes));
    const std::size_t build_id_size = build_id.size();
    build_id.resize(kBuildIdBytes, '\0');

    std::string trailer(kStart);
    trailer += unhex(key);
    trailer.append(digest.begin(), digest.end());
    trailer += little_endian(bytes.size(), 8);
    trailer += build_id;
    trailer += little_endian(build_id_size, 4);
    trailer += kEnd;
    return trailer;
}

void verify_entry(std::string_view bytes, std::string_view key, const Expected &expected) {
    if (bytes.size() <= kTrailerBytes)
        throw Failure("it is too short for a cache entry");
    const std::string_view trailer = bytes.substr(bytes.size() - kTrailerBytes);
    const std::string_view object = bytes.substr(0, bytes.size() - kTrailerBytes);
    if (trailer.substr(0, kStart.size()) != kStart || trailer.substr(kTrailerBytes - kEnd.size()) != kEnd)
        throw Failure("it has no trailer: it is no cache entry, or cut off");
    if (trailer.substr(kStart.size(), 32) != unhex(key))
        throw Failure("it is the entry of another key");
    if (trailer != make_trailer(object, key))
        throw Failure("its bytes have changed since it was written");
    verify_output(object, expected);
}

} // namespace ck_jit
