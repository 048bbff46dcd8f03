// SPDX-License-Identifier: MIT
#include "compile.h"

#include "build_log.h"
#include "cache_key.h"
#include "compiler_id.h"
#include "environment.h"
#include "failure.h"
#include "file_lock.h"
#include "run_command.h"
#include "sha256.h"
#include "stats.h"
#include "stderr_log.h"

#include <atomic>
#include <chrono>
#include <unistd.h>

namespace ck_jit {

namespace {

std::string shell_quoted(const std::string &text) {
    std::string quoted = "'";
    for (const char c : text)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

Failure compiling_is_off(const Request &request) {
    return Failure("it is in no cache directory and CK_JIT_COMPILE=0; make it with: CK_JIT_CACHE_DIR=" +
                   shell_quoted(cache_dir()) + " CK_JIT_ARCH=" + shell_quoted(request.expected.arch) +
                   " ck-post-build prebuild --root " + shell_quoted(config().root) + " " +
                   shell_quoted(request.blob.name));
}

// Only in the scratch directory, which nobody else can write.
bool in_scratch(const std::string &path) { return path.rfind(config().scratch_dir + "/", 0) == 0; }

Command compile_command(const Request &request, const Compiler &compiler, const std::string &output) {
    Command command;
    command.arguments = {config().script};
    const auto add = [&](const std::string &option, const std::string &value) {
        command.arguments.push_back(option);
        command.arguments.push_back(value);
    };
    if (const BlobEntry *entry = request.blob.entry) {
        add("--blob-source", entry->source);
        add("--blob-flags", std::string(entry->flags) + " --offload-arch=" + request.expected.arch);
    } else {
        add("--blob", request.blob.name);
    }
    add("--output", output);
    add("--hipcc", compiler.hipcc);
    add("--root", config().root);
    if (config().verbose)
        command.arguments.push_back("--verbose");
    // CK_JIT_LIFELINE tells the script that the end of stdin means the end of the process that wants the
    // blob.
    command.environment = {"CK_JIT_ARCH=" + request.expected.arch, "CK_JIT_LIFELINE=1"};
    if (in_scratch(output))
        command.environment.push_back("CK_JIT_PRECOMPILED=" + config().scratch_dir + "/precompiled/" +
                                      compiler.key);
    command.directory = config().root;
    command.timeout = config().compile_timeout;
    return command;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_script() {
    if (::access(config().script.c_str(), X_OK) != 0)
        throw Failure("ck_jit_compile.sh not found at " + config().script +
                      " (or not executable); set CK_JIT_ROOT to the directory that has it");
}

std::string with_log(const std::string &what, const BuildLog &log) {
    return what + (log.first_error().empty() ? "" : ": " + log.first_error()) +
           (log.path().empty() ? "" : " (log: " + log.path() + ")");
}

// The bytes of the verified output of the compiler.
std::string run_script(const Request &request, const Compiler &compiler, const std::string &output) {
    check_script();
    const auto start = Clock::now();
    BuildLog log(request.entry_name(compiler.key));
    const ExitStatus status = run(compile_command(request, compiler, output), [&](std::string_view text) {
        log.add(text);
        if (config().verbose)
            write_all(STDERR_FILENO, text);
    });
    log.finish(status.may_be_good() ? std::optional(seconds_since(start)) : std::nullopt);
    if (!status.may_be_good())
        throw Failure(with_log("build script failed (" + status.text() + ")", log));
    const std::optional<std::string> bytes = read_file(output);
    if (!bytes)
        throw Failure(with_log("build script left no output", log));
    try {
        verify_output(*bytes, request.expected);
    } catch (const Failure &failure) {
        throw Failure(with_log(std::string("the compiled file is no good: ") + failure.what(), log));
    }
    return *bytes;
}

void tell_once_not_kept(const std::string &reason) {
    static std::atomic<bool> told{false};
    if (!told.exchange(true))
        log_line("compiled blobs serve this process only, because they cannot be kept: " + reason);
}

// Loads from the cache what was just put there. Where that fails (no space, no permission, a network file
// system that still remembers that the file did not exist) this process uses the copy it has.
Library keep(const Request &request, const Compiler &compiler, const std::string &bytes, Library own_copy) {
    try {
        publish(request, compiler.key, bytes);
        if (std::optional<Library> kept = find_in_cache(request, compiler.key, BadEntry::ignore))
            return *kept;
        log_verbose("cannot see the file just put into " + cache_dir() + "; using an own copy");
    } catch (const Failure &failure) {
        tell_once_not_kept(failure.what());
    }
    return own_copy;
}

Library compile(const Request &request, const Compiler &compiler) {
    const JobSlot job;
    log_compile_started(request.blob.name);
    const auto start = Clock::now();
    const std::shared_ptr<WorkDir> work = WorkDir::make(cache_dir());
    const std::string output = work->path() + "/" + request.key(compiler.key) + ".so";
    const std::string bytes = run_script(request, compiler, output);
    const double seconds = seconds_since(start);
    count_compile(seconds);
    log_compile_done(request.blob.name, seconds);
    return keep(request, compiler, bytes, Library{output, named_functions(request, bytes), work});
}

std::optional<Library> find_in_trusted_cache(const Request &request, const std::string &compiler_key,
                                             BadEntry bad) {
    try {
        return find_in_cache(request, compiler_key, bad);
    } catch (const Failure &failure) {
        tell_once_not_kept(failure.what());
        return std::nullopt;
    }
}

// "" where there is none or none may be used: then any compiler's entry for the same input will do.
std::string compiler_key_if_any() {
    if (!config().compile)
        return "";
    try {
        return compiler().key;
    } catch (const Failure &failure) {
        log_verbose(failure.what());
        return "";
    }
}

} // namespace

std::optional<Library> find_library(const Request &request) {
    std::optional<Library> library = find_in_tiers(request);
    if (!library)
        library = find_in_trusted_cache(request, compiler_key_if_any(), BadEntry::ignore);
    if (library)
        count_hit();
    return library;
}

Library make_library(const Request &request) {
    if (!config().compile)
        throw compiling_is_off(request);
    const Compiler &by = compiler();
    const std::string entry = request.entry_name(by.key);
    FileLock lock(sha256_hex(netstrings({cache_dir(), entry})));
    if (lock.waited())
        count_wait();
    if (std::optional<Library> made = find_in_trusted_cache(request, by.key, BadEntry::set_aside)) {
        lock.done();
        count_hit();
        return *made;
    }
    if (const std::string failure = lock.failure_while_waiting(); !failure.empty())
        throw Failure(failure);
    try {
        Library library = compile(request, by);
        lock.done();
        return library;
    } catch (const Failure &failure) {
        lock.leave_failure(failure.what());
        throw;
    }
}

} // namespace ck_jit
