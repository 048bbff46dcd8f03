// SPDX-License-Identifier: MIT
#include "sha256.h"

#include <algorithm>
#include <cstring>

namespace ck_jit {

namespace {

constexpr std::uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t rotate(std::uint32_t value, int bits) { return value >> bits | value << (32 - bits); }

std::uint32_t big_endian(const unsigned char *bytes) {
    std::uint32_t value;
    std::memcpy(&value, bytes, 4);
    return __builtin_bswap32(value);
}

} // namespace

void Sha256::block(const unsigned char *bytes) {
    std::uint32_t w[64];
    for (int i = 0; i < 16; ++i)
        w[i] = big_endian(bytes + 4 * i);
    for (int i = 16; i < 64; ++i) {
        const std::uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        const std::uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int i = 0; i < 64; ++i) {
        const std::uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
        const std::uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::uint32_t worked[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i)
        state_[i] += worked[i];
}

Sha256 &Sha256::update(std::string_view bytes) {
    const auto *next = reinterpret_cast<const unsigned char *>(bytes.data());
    std::size_t left = bytes.size();
    total_ += left;
    while (left > 0) {
        if (pending_size_ == 0 && left >= pending_.size()) { // no copy for whole blocks
            block(next);
            next += pending_.size();
            left -= pending_.size();
            continue;
        }
        const std::size_t taken = std::min(left, pending_.size() - pending_size_);
        std::memcpy(&pending_[pending_size_], next, taken);
        pending_size_ += taken;
        next += taken;
        left -= taken;
        if (pending_size_ == pending_.size()) {
            block(pending_.data());
            pending_size_ = 0;
        }
    }
    return *this;
}

Sha256::Digest Sha256::digest() {
    const std::uint64_t bits = total_ * 8;
    update(std::string_view("\x80", 1));
    while (pending_size_ != 56)
        update(std::string_view("\0", 1));
    char length[8];
    for (int i = 0; i < 8; ++i)
        length[i] = static_cast<char>(bits >> (56 - 8 * i));
    update(std::string_view(length, 8));
    Digest result;
    for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return result;
}

Sha256::Digest sha256(std::string_view bytes) { return Sha256().update(bytes).digest(); }

std::string hex(const unsigned char *bytes, std::size_t count) {
    static const char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 15];
    }
    return text;
}

std::string sha256_hex(std::string_view bytes) {
    const Sha256::Digest digest = sha256(bytes);
    return hex(digest.data(), digest.size());
}

} // namespace ck_jit
