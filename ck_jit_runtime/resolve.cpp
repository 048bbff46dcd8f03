// SPDX-License-Identifier: MIT
#include "resolve.h"

#include "blob_state.h"
#include "compile.h"
#include "failure.h"
#include "loader.h"
#include "shared_state.h"
#include "stats.h"
#include "stderr_log.h"
#include "usage_record.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace ck_jit {

namespace {

struct Task {
    Blob blob;
    std::string error; // "": done
    bool finished = false;
    std::optional<Ownership> ownership;
    std::optional<Request> request;
};

void fail(Task &task, const std::string &reason) noexcept {
    try {
        task.error = "blob not resolved: " + task.blob.name + ": " + reason;
        log_line("error: " + task.error);
        count_failure();
        task.ownership->failed(task.error);
    } catch (const std::exception &) {
        task.ownership.reset(); // gives the blob back
    }
    task.finished = true;
}

void finish(Task &task, const Library &library, Aim aim) {
    if (aim == Aim::compile_only) {
        task.ownership->compiled(library);
    } else {
        void *const *kernels = load(task.blob, library);
        record_use(task.blob.name);
        task.ownership->loaded(kernels);
    }
    task.finished = true;
}

// Whether a file that passed every check was removed before it could be loaded: somebody emptied the cache.
bool vanished(const Library &library) { return ::access(library.path.c_str(), F_OK) != 0; }

// Finishes the task if the blob is in a cache directory.
void try_cached(Task &task, Aim aim) {
    task.request = make_request(task.blob);
    std::optional<Library> library = task.ownership->take_own_copy();
    if (!library)
        library = find_library(*task.request);
    if (!library)
        return;
    try {
        finish(task, *library, aim);
    } catch (const Failure &) {
        if (!vanished(*library))
            throw;
    }
}

void compile_now(Task &task, Aim aim) noexcept {
    try {
        const Library library = make_library(*task.request);
        try {
            finish(task, library, aim);
        } catch (const Failure &) {
            if (!vanished(library))
                throw;
            finish(task, make_library(*task.request), aim);
        }
    } catch (const std::exception &error) {
        fail(task, error.what());
    }
}

// One pass over the unfinished tasks. Claims what is free; what another thread has in hand is left for the
// next pass, so that no thread waits for a blob while it holds another.
std::vector<Task *> claim_and_try_cached(std::vector<Task> &tasks, Aim aim) {
    std::vector<Task *> cold;
    for (Task &task : tasks) {
        if (task.finished)
            continue;
        const ClaimResult result = claim(task.blob);
        if (result.claim == Claim::busy)
            continue;
        if (result.claim != Claim::ours) {
            task.error = result.error;
            task.finished = true;
            continue;
        }
        task.ownership.emplace(task.blob.name);
        try {
            try_cached(task, aim);
            if (!task.finished)
                cold.push_back(&task);
        } catch (const std::exception &error) {
            fail(task, error.what());
        }
    }
    return cold;
}

void compile_in_parallel(const std::vector<Task *> &cold, Aim aim) {
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < cold.size(); ++i)
        try {
            threads.emplace_back(compile_now, std::ref(*cold[i]), aim);
        } catch (const std::exception &) {
            compile_now(*cold[i], aim); // no more threads allowed: one after another
        }
    if (!cold.empty())
        compile_now(*cold[0], aim);
    for (std::thread &thread : threads)
        thread.join();
}

std::vector<Task> tasks_for(const std::vector<Blob> &blobs) {
    std::vector<Task> tasks;
    for (const Blob &blob : blobs)
        if (std::none_of(tasks.begin(), tasks.end(),
                         [&](const Task &task) { return task.blob.name == blob.name; })) {
            tasks.emplace_back();
            tasks.back().blob = blob;
        }
    return tasks;
}

// A slot for a name that the manifest does not have.
void fill_named_slot(NamedSlot &slot) {
    const ClaimResult result = claim({slot.blob, nullptr});
    if (!result.kernels[slot.kernel])
        throw Failure("blob not resolved: " + slot.blob +
                      ": symbol missing: it has no function that starts with " +
                      manifest().kernels[slot.kernel].symbol_prefix);
    slot.kernels.store(result.kernels, std::memory_order_release);
}

void resolve_or_throw(Slot *const *slots, std::size_t count) {
    prepare_process();
    std::vector<Blob> blobs;
    for (std::size_t i = 0; i < count; ++i)
        if (slots[i] && !slots[i]->kernels.load(std::memory_order_acquire))
            blobs.push_back(blob_of(slots[i]));
    if (const std::string error = bring_in(blobs, Aim::load); !error.empty())
        throw Failure(error);
    for (std::size_t i = 0; i < count; ++i)
        if (slots[i] && !slots[i]->kernels.load(std::memory_order_acquire) && is_named(slots[i]))
            fill_named_slot(*static_cast<NamedSlot *>(slots[i]));
    set_last_error("");
}

} // namespace

std::string bring_in(const std::vector<Blob> &blobs, Aim aim) {
    std::vector<Task> tasks = tasks_for(blobs);
    for (;;) {
        compile_in_parallel(claim_and_try_cached(tasks, aim), aim);
        const auto open =
            std::find_if(tasks.begin(), tasks.end(), [](const Task &task) { return !task.finished; });
        if (open == tasks.end())
            break;
        count_wait();
        wait_while_busy(open->blob.name);
    }
    for (const Task &task : tasks)
        if (!task.error.empty())
            return task.error;
    return "";
}

bool resolve(Slot *const *slots, std::size_t count) noexcept {
    try {
        resolve_or_throw(slots, count);
        return true;
    } catch (const std::exception &error) {
        set_last_error(error.what());
    } catch (...) {
        set_last_error("an unknown exception was thrown");
    }
    return false;
}

} // namespace ck_jit
