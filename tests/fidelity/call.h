// SPDX-License-Identifier: MIT
//
// What both halves of the driver share: a call as the command line describes it, and arguments that are all
// different.
#pragma once

#include "ck_tile/host/stream_config.hpp"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <variant>

// NAME=NUMBER words of the command line; what is not named is 0, or the default given here.
class Call {
  public:
    Call(int count, char **words) {
        for (int i = 0; i < count; ++i) {
            const std::string word = words[i];
            const auto equals = word.find('=');
            numbers_[word.substr(0, equals)] = std::strtod(word.c_str() + equals + 1, nullptr);
        }
    }
    double real(const char *name, double otherwise = 0) const {
        const auto found = numbers_.find(name);
        return found == numbers_.end() ? otherwise : found->second;
    }
    int operator[](const char *name) const { return static_cast<int>(real(name)); }
    int number(const char *name, int otherwise) const { return static_cast<int>(real(name, otherwise)); }
    std::string data_type() const { return (*this)["fp16"] ? "fp16" : "bf16"; }

  private:
    std::map<std::string, double> numbers_;
};

// Gives every pointer and number a value of its own, the same in every process. No kernel runs, so nothing is
// read.
class Distinct {
  public:
    template <typename... Pointers> void pointers(Pointers &...targets) { (pointer(targets), ...); }
    template <typename... Numbers> void numbers(Numbers &...targets) { ((targets = next_number_ += 8), ...); }

  private:
    template <typename Pointer> void pointer(Pointer &target) {
        target = reinterpret_cast<Pointer>(next_pointer_ += 0x10000);
    }
    std::uintptr_t next_pointer_ = 0x7000'0000'0000;
    int next_number_ = 4096;
};

using Seed = std::variant<std::pair<std::uint64_t, std::uint64_t>, std::pair<const void *, const void *>>;

inline Seed seed(const Call &call, Distinct &distinct) {
    if (!call["seed_on_device"])
        return std::make_pair(std::uint64_t{0x1122334455667788}, std::uint64_t{0x99aabbcc});
    const void *seed, *offset;
    distinct.pointers(seed, offset);
    return std::make_pair(seed, offset);
}

// A function of CK under the name of its direction. A driver has the directions whose files it is linked
// from.
struct Direction {
    using Function = float (*)(const Call &, const ck_tile::stream_config &);
    Direction(const char *name, Function call) { all()[name] = call; }
    static std::map<std::string, Function> &all() {
        static std::map<std::string, Function> directions;
        return directions;
    }
};
