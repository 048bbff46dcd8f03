// SPDX-License-Identifier: MIT
//
// Runs a program without a shell, with a time limit, and reads what it prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("hidden")]] ck_jit {

struct Command {
    std::vector<std::string> arguments;   // [0] is the path of the program
    std::vector<std::string> environment; // "NAME=value", added to ours
    std::string directory;                // where it runs
    double timeout;                       // seconds
};

struct ExitStatus {
    enum class Kind { exited, killed, timed_out, unknown } kind;
    int number; // exit code or signal

    // Somebody else in this process may collect our child, or tell the kernel to. Then only the output
    // can tell.
    bool may_be_good() const { return kind == Kind::unknown || (kind == Kind::exited && number == 0); }
    std::string text() const; // "exit code 3"
};

// `output` gets what the program writes to stdout and stderr, in pieces. The program has its own process
// group, default signal handlers, none of our descriptors, and as stdin a pipe that is closed when this
// process dies. Throws Failure when it cannot be started.
ExitStatus run(const Command &command, const std::function<void(std::string_view)> &output);

} // namespace ck_jit
