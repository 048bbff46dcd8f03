// SPDX-License-Identifier: MIT
//
// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace [[gnu::visibility("hidden")]] ck_jit {

class Sha256 {
  public:
    using Digest = std::array<unsigned char, 32>;

    Sha256 &update(std::string_view bytes);
    Digest digest(); // once, at the end

  private:
    void block(const unsigned char *bytes);

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, 64> pending_{};
    std::size_t pending_size_ = 0;
    std::uint64_t total_ = 0;
};

Sha256::Digest sha256(std::string_view bytes);
std::string hex(const unsigned char *bytes, std::size_t count);
std::string sha256_hex(std::string_view bytes);

} // namespace ck_jit
