#include "stream.h"

#include "device.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace hip_standin {

struct Work {
    uint64_t sequence = 0;
    std::vector<StreamPoint> after;
    std::function<void()> run;
};

struct Stream {
    uint64_t number = 0;
    int device = 0;
    bool blocking = true;
    // One lock for all streams guards what follows.
    uint64_t submitted = 0;
    uint64_t completed = 0;
    std::deque<Work> queue;
    bool has_worker = false;
};

namespace {

struct Streams {
    std::mutex mutex;
    std::condition_variable changed; // some stream's completed
    std::map<void *, StreamRef> created;
    std::map<int, StreamRef> null_streams;
    uint64_t next_number = 1;
};

// Never destroyed: worker threads may outlive main.
Streams &streams() {
    static Streams &instance = *new Streams;
    return instance;
}

// The functions from here on that take no lock are called with it held.

StreamRef null_stream(int device) {
    StreamRef &stream = streams().null_streams[device];
    if (!stream) {
        stream = std::make_shared<Stream>();
        stream->device = device;
    }
    return stream;
}

StreamRef new_stream(int device, bool blocking) {
    auto stream = std::make_shared<Stream>();
    stream->number = streams().next_number++;
    stream->device = device;
    stream->blocking = blocking;
    streams().created.emplace(stream.get(), stream);
    return stream;
}

bool reached(const StreamPoint &point) { return point.stream->completed >= point.sequence; }

bool is_ready(const Stream &stream, const Work &work) {
    return stream.completed + 1 == work.sequence &&
           std::all_of(work.after.begin(), work.after.end(), reached);
}

void add_null_stream_order(const StreamRef &stream, std::vector<StreamPoint> &after) {
    if (!stream->blocking)
        return;
    if (stream->number != 0) {
        const StreamRef null = null_stream(stream->device);
        after.push_back({null, null->submitted});
        return;
    }
    for (const auto &entry : streams().created)
        if (entry.second->device == stream->device && entry.second->blocking)
            after.push_back({entry.second, entry.second->submitted});
}

void run_unlocked(std::unique_lock<std::mutex> &lock, Stream &stream, Work work) {
    lock.unlock();
    try {
        work.run();
    } catch (const std::exception &error) {
        // Nobody is there to be told, and the stream must go on.
        std::fprintf(stderr, "hip_standin: work on stream %llu: %s\n",
                     static_cast<unsigned long long>(stream.number), error.what());
    }
    work.run = nullptr; // what it holds may call back into this library when it goes
    lock.lock();
    stream.completed = work.sequence;
    streams().changed.notify_all();
}

// Lives as long as there is work, so that an idle process has no threads of ours.
void work_off(const StreamRef &stream) {
    std::unique_lock<std::mutex> lock(streams().mutex);
    while (!stream->queue.empty()) {
        streams().changed.wait(lock, [&] { return is_ready(*stream, stream->queue.front()); });
        Work work = std::move(stream->queue.front());
        stream->queue.pop_front();
        run_unlocked(lock, *stream, std::move(work));
    }
    stream->has_worker = false;
}

} // namespace

StreamRef create_stream(int device, bool blocking) {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    return new_stream(device, blocking);
}

StreamRef find_stream(void *handle) {
    thread_local std::map<int, StreamRef> per_thread;
    const std::lock_guard<std::mutex> lock(streams().mutex);
    // hipStreamLegacy is 1, hipStreamPerThread 2.
    switch (reinterpret_cast<uintptr_t>(handle)) {
    case 0:
    case 1:
        return null_stream(current_device());
    case 2: {
        StreamRef &stream = per_thread[current_device()];
        if (!stream)
            stream = new_stream(current_device(), true);
        return stream;
    }
    }
    const auto found = streams().created.find(handle);
    return found == streams().created.end() ? nullptr : found->second;
}

void *handle_of(const StreamRef &stream) { return stream->number == 0 ? nullptr : stream.get(); }

bool destroy_stream(void *handle) {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    return streams().created.erase(handle) != 0;
}

uint64_t stream_number(const StreamRef &stream) { return stream->number; }

int stream_device(const StreamRef &stream) { return stream->device; }

StreamPoint submit(const StreamRef &stream, RunOn where, std::function<void()> run,
                   std::vector<StreamPoint> after) {
    std::unique_lock<std::mutex> lock(streams().mutex);
    add_null_stream_order(stream, after);
    Work work{++stream->submitted, std::move(after), std::move(run)};
    const StreamPoint point{stream, work.sequence};
    if (where == RunOn::caller_if_idle && is_ready(*stream, work)) {
        run_unlocked(lock, *stream, std::move(work));
        return point;
    }
    stream->queue.push_back(std::move(work));
    if (!stream->has_worker) {
        stream->has_worker = true;
        std::thread(work_off, stream).detach();
    }
    return point;
}

bool is_done(const StreamPoint &point) {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    return reached(point);
}

void wait_for(const StreamPoint &point) {
    std::unique_lock<std::mutex> lock(streams().mutex);
    streams().changed.wait(lock, [&] { return reached(point); });
}

StreamPoint last_point(const StreamRef &stream) {
    const std::lock_guard<std::mutex> lock(streams().mutex);
    return {stream, stream->submitted};
}

void wait_for_device(int device) {
    std::vector<StreamPoint> points;
    {
        const std::lock_guard<std::mutex> lock(streams().mutex);
        const StreamRef null = null_stream(device);
        points.push_back({null, null->submitted});
        for (const auto &entry : streams().created)
            if (entry.second->device == device)
                points.push_back({entry.second, entry.second->submitted});
    }
    for (const StreamPoint &point : points)
        wait_for(point);
}

} // namespace hip_standin
