// Tests of the parts of the runtime that need no process: called by test_runtime_units.py, one test per name.
//
//   unit_tests NAME [FILE]      exit status 0 when it passes
#include "arch.h"
#include "cache_key.h"
#include "ck_jit.h"
#include "ck_jit_by_name.h"
#include "elf_file.h"
#include "entry_file.h"
#include "failure.h"
#include "file_io.h"
#include "offload_bundle.h"
#include "run_command.h"
#include "sha256.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>

using namespace ck_jit;

namespace {

void check(bool good, const char *what, int line) {
    if (!good) {
        std::fprintf(stderr, "line %d: %s\n", line, what);
        std::exit(1);
    }
}
#define CHECK(condition) check(condition, #condition, __LINE__)

std::string failure_of(const std::function<void()> &action) {
    try {
        action();
    } catch (const Failure &failure) {
        return failure.what();
    }
    return "";
}

void sha256_of_known_texts(const std::string &) {
    CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256_hex(std::string(1000000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// In pieces of any size the result is that of the whole: prints hash lines for the Python side to compare.
void sha256_in_pieces(const std::string &) {
    std::mt19937 random(1);
    for (std::size_t size = 0; size < 300; ++size) {
        std::string text(size, '\0');
        for (char &c : text)
            c = static_cast<char>(random());
        Sha256 pieces;
        for (std::size_t at = 0; at < size;) {
            const std::size_t length = std::min<std::size_t>(1 + random() % 70, size - at);
            pieces.update(std::string_view(text).substr(at, length));
            at += length;
        }
        const Sha256::Digest digest = pieces.digest();
        CHECK(hex(digest.data(), digest.size()) == sha256_hex(text));
        std::printf("%s %s\n",
                    size ? hex(reinterpret_cast<const unsigned char *>(text.data()), size).c_str() : "-",
                    sha256_hex(text).c_str());
    }
}

void which_code_runs_on_which_device(const std::string &) {
    const std::string device = "gfx90a:sramecc+:xnack-";
    CHECK(arch_runs_on("gfx90a", device));
    CHECK(arch_runs_on("gfx90a:xnack-", device));
    CHECK(arch_runs_on("gfx90a:sramecc+:xnack-", device));
    CHECK(!arch_runs_on("gfx90a:xnack+", device));
    CHECK(!arch_runs_on("gfx90", device));
    CHECK(!arch_runs_on("gfx90a0", device));
    CHECK(!arch_runs_on("gfx942", device));
    CHECK(!arch_runs_on("", device));
    CHECK(arch_runs_on("gfx942:sramecc+", "gfx942"));
}

void stems_of_entries(const std::string &) {
    CHECK(entry_stem("a/b\\c.cpp") == "a_b_c");
    CHECK(entry_stem("x.cu") == "x");
    CHECK(entry_stem("x.cpp.cu") == "x.cpp");
    CHECK(entry_stem(".cpp") == "_cpp");
    CHECK(entry_stem("..") == "_.");
    CHECK(entry_stem("name") == "name");
    CHECK(entry_stem(std::string(300, 'n') + ".cpp") == std::string(160, 'n'));
}

void netstrings_tell_lists_apart(const std::string &) {
    CHECK(netstrings({"ab", ""}) == "2:ab,0:,");
    CHECK(netstrings({"a", "b"}) != netstrings({"ab"}));
    CHECK(input_key("n", "s", "h", "f", "a") != input_key("n", "s", "hf", "", "a"));
    CHECK(input_key("n", "s", "h", "f", "a").size() == kKeyPartDigits);
}

void last_error_is_cut_not_overrun(const std::string &) {
    char buffer[8] = "xxxxxxx";
    set_last_error("a longer text");
    CHECK(copy_last_error(buffer, 5) == 13);
    CHECK(!std::strcmp(buffer, "a lo"));
    CHECK(buffer[5] == 'x');
    CHECK(copy_last_error(nullptr, 100) == 13);
    CHECK(copy_last_error(buffer, 0) == 13);
    set_last_error(std::string(100000, 'e'));
    CHECK(copy_last_error(nullptr, 0) == 4095);
    set_last_error("");
    CHECK(copy_last_error(buffer, sizeof buffer) == 0 && buffer[0] == '\0');
}

const Expected toy_1{"gfx90a", {"_Z4toy_ILi1EEii", "_Z10toy_twice_ILi1EEii"}, {}};

// Any bytes at all must give a reason, never a crash. FILE is a compiled toy blob.
void damaged_libraries_are_refused_calmly(const std::string &path) {
    const std::string good = read_file(path).value();
    CHECK(failure_of([&] { verify_output(good, toy_1); }).empty());
    std::mt19937 random(2);
    int refused = 0;
    for (int round = 0; round < 4000; ++round) {
        std::string bad = good;
        if (round % 3 == 0)
            bad.resize(random() % bad.size());
        // Mostly where the tables are: the header, the section headers at the end.
        for (int flips = 1 + static_cast<int>(random() % 8); flips > 0 && !bad.empty(); --flips) {
            const std::size_t range = std::min<std::size_t>(bad.size(), random() % 2 ? 512 : 2048);
            const std::size_t place = random() % 2 ? random() % range : bad.size() - 1 - random() % range;
            bad[place] = static_cast<char>(random());
        }
        refused += !failure_of([&] { verify_output(bad, toy_1); }).empty();
        failure_of([&] { ElfFile(bad).build_id(); });
    }
    CHECK(refused > 1000);
}

void damaged_bundles_are_refused_calmly(const std::string &path) {
    const std::string file = read_file(path).value();
    const std::string good(ElfFile(file).section(".hip_fatbin"));
    CHECK(!good.empty());
    CHECK(failure_of([&] { check_device_code(good, "gfx90a"); }).empty());
    CHECK(failure_of([&] { check_device_code(good, "gfx942"); }) ==
          "it has device code for gfx90a, not for gfx942");
    std::mt19937 random(3);
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string bad = good.substr(0, round % 2 ? good.size() : random() % good.size());
        for (int flips = 1 + static_cast<int>(random() % 4); flips > 0 && !bad.empty(); --flips)
            bad[random() % std::min<std::size_t>(bad.size(), 120)] = static_cast<char>(random());
        refused += !failure_of([&] { check_device_code(bad, "gfx90a"); }).empty();
    }
    CHECK(refused > 10000);
}

void every_changed_bit_of_an_entry_is_noticed(const std::string &path) {
    const std::string key(64, 'a');
    const std::string object = read_file(path).value();
    std::string entry = object + make_trailer(object, key);
    CHECK(failure_of([&] { verify_entry(entry, key, toy_1); }).empty());
    CHECK(failure_of([&] { verify_entry(entry, std::string(64, 'b'), toy_1); }) ==
          "it is the entry of another key");
    std::mt19937 random(4);
    for (int round = 0; round < 1500; ++round) {
        const std::size_t tail = 1200; // round 0 to 1023: each bit of the trailer
        const std::size_t bit =
            round < 1024 ? (entry.size() - 128) * 8 + round : random() % ((entry.size() - tail) * 8);
        entry[bit / 8] ^= static_cast<char>(1 << bit % 8);
        CHECK(!failure_of([&] { verify_entry(entry, key, toy_1); }).empty());
        entry[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
}

void what_a_command_prints_and_how_it_ends(const std::string &) {
    std::string printed;
    const auto collect = [&](std::string_view text) { printed.append(text); };
    const auto shell = [](const char *script, double timeout) {
        return Command{{"/bin/sh", "-c", script}, {"ADDED=a b"}, "/", timeout};
    };
    CHECK(run(shell("echo \"$ADDED\"; pwd; echo err >&2; exit 3", 60), collect).text() == "exit code 3");
    CHECK(printed == "a b\n/\nerr\n");
    CHECK(run(shell("kill -9 $$", 60), collect).text() == "killed by signal 9, Killed");
    CHECK(run(shell("sleep 1000 & sleep 1000", 0.2), collect).kind == ExitStatus::Kind::timed_out);
    CHECK(
        run(shell("sleep 1000 & exit 0", 60), collect).may_be_good()); // what stays behind is not waited for
    CHECK(run(shell("read line; exit 7", 0.3), collect).kind ==
          ExitStatus::Kind::timed_out); // stdin stays open
    CHECK(!failure_of([&] { run({{"/nowhere/program"}, {}, "/", 1}, collect); }).empty());
}

} // namespace

int main(int argc, char **argv) {
    const std::map<std::string, void (*)(const std::string &)> tests = {
#define TEST(name) {#name, name}
        TEST(sha256_of_known_texts),
        TEST(sha256_in_pieces),
        TEST(which_code_runs_on_which_device),
        TEST(stems_of_entries),
        TEST(netstrings_tell_lists_apart),
        TEST(last_error_is_cut_not_overrun),
        TEST(damaged_libraries_are_refused_calmly),
        TEST(damaged_bundles_are_refused_calmly),
        TEST(every_changed_bit_of_an_entry_is_noticed),
        TEST(what_a_command_prints_and_how_it_ends),
    };
    const auto test = tests.find(argc > 1 ? argv[1] : "");
    if (test == tests.end()) {
        for (const auto &[name, function] : tests)
            std::printf("%s\n", name.c_str());
        return 2;
    }
    test->second(argc > 2 ? argv[2] : "");
    return 0;
}
