// driver ORIGINAL REWRITTEN PLAN REACHED RANDOM SEED: calls both libraries with the plan's inputs and random
// ones, compares the kernels called, the value returned and the text printed, and says which sites were
// reached.
#include "direction.h"
#include "recorder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <memory>
#include <pthread.h>
#include <random>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

using Setting = std::pair<int, int>; // field, number of its value

struct Value {
    double number = 0;
    std::string text;
};

struct Site {
    int line = 0;
    int tries = 0;
    std::set<int> symbols;
    std::set<int> together;                  // those of all sites in its block
    std::vector<std::vector<Setting>> path;  // what each field may be
    std::vector<std::vector<Setting>> clear; // where earlier sites do not take it
    std::vector<Setting> flips;
};

struct Plan {
    std::vector<std::string> names;
    std::vector<std::vector<Value>> pools;
    std::vector<Site> sites;
};

std::vector<Setting> read_settings(std::istream &in) {
    std::size_t count = 0;
    in >> count;
    std::vector<Setting> settings(count);
    for (Setting &setting : settings)
        in >> setting.first >> setting.second;
    return settings;
}

std::set<int> read_symbols(std::istream &in) {
    std::size_t count = 0;
    std::set<int> numbers;
    in >> count;
    for (std::string symbol; count > 0 && in >> symbol; --count)
        numbers.insert(oracle::number_of(symbol));
    return numbers;
}

Plan read_plan(const char *path) {
    std::ifstream in(path);
    Plan plan;
    std::size_t fields = 0, sites = 0;
    in >> fields;
    plan.pools.resize(fields);
    for (std::size_t i = 0; i < fields; ++i) {
        std::size_t count = 0;
        std::string kind;
        plan.names.emplace_back();
        in >> plan.names.back() >> kind >> count;
        plan.pools[i].resize(count);
        for (Value &value : plan.pools[i])
            if (kind == "text") {
                std::getline(in >> std::ws, value.text);
            } else {
                in >> value.number;
            }
    }
    in >> sites;
    plan.sites.resize(sites);
    for (Site &site : plan.sites) {
        in >> site.line >> site.tries;
        site.symbols = read_symbols(in);
        site.together = read_symbols(in);
        for (auto *domains : {&site.path, &site.clear}) {
            std::size_t count = 0;
            in >> count;
            while (count-- > 0)
                domains->push_back(read_settings(in));
        }
        site.flips = read_settings(in);
    }
    if (!in) {
        std::fprintf(stderr, "%s: not a plan\n", path);
        std::exit(2);
    }
    return plan;
}

std::set<std::size_t> read_reached(const char *path) {
    std::ifstream in(path);
    return {std::istream_iterator<std::size_t>(in), {}};
}

void *load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *function = library ? dlsym(library, oracle::function_symbol()) : nullptr;
    if (!function) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(2);
    }
    return function;
}

// What one call did.
struct Outcome {
    std::vector<int> calls;
    double result = 0;
    std::string printed;
    bool operator==(const Outcome &other) const {
        return calls == other.calls && result == other.result && printed == other.printed;
    }
};

// Standard output and error go to a file in memory; the results go where output went before.
class Printed {
  public:
    Printed() : file_(memfd_create("printed", 0)) {
        report_ = fdopen(dup(1), "w");
        dup2(file_, 1);
        dup2(file_, 2);
    }
    std::FILE *report() { return report_; }
    std::string take() {
        std::fflush(stdout);
        const off_t size = lseek(file_, 0, SEEK_CUR);
        if (size <= 0)
            return {};
        std::string text(static_cast<std::size_t>(size), '\0');
        if (pread(file_, text.data(), text.size(), 0) != size || ftruncate(file_, 0) != 0 ||
            lseek(file_, 0, SEEK_SET) != 0)
            std::abort();
        return text;
    }

  private:
    int file_;
    std::FILE *report_;
};

class Oracle {
  public:
    Oracle(Plan plan, void *original, void *rewritten, unsigned long seed)
        : plan_(std::move(plan)), original_(original), rewritten_(rewritten), random_(seed),
          input_(oracle::make_input()), reached_(plan_.sites.size()), taker_(plan_.sites.size(), -1) {
        for (std::size_t i = 0; i < plan_.sites.size(); ++i)
            for (int symbol : plan_.sites[i].symbols)
                sites_of_.emplace(symbol, i);
    }

    // Each site until it is reached, twice at least, and at most if it is known to be reached on another
    // architecture: its own values fixed, the rest random, from the third time on clear of earlier sites.
    // Then each of its values broken.
    void aim(const std::set<std::size_t> &known) {
        for (std::size_t number = 0; number < plan_.sites.size(); ++number) {
            const Site &site = plan_.sites[number];
            const int tries = known.count(number) ? std::min(site.tries, 2) : site.tries;
            for (int i = 0; i < tries && !(i > 1 && reached_[number]); ++i) {
                draw_all();
                apply(site.path, i == 0 ? Pick::last : i == 1 ? Pick::first : Pick::any);
                if (i > 1)
                    apply(site.clear, Pick::any);
                note(number, compare());
            }
            for (const Setting &flip : site.flips) {
                draw_all();
                apply(site.path, Pick::last);
                set(flip);
                compare();
            }
        }
    }

    // Half of them anything from the pools, half near a site.
    void random(long count) {
        for (long i = 0; i < count; ++i) {
            draw_all();
            if (i % 2 && !plan_.sites.empty()) {
                apply(plan_.sites[random_() % plan_.sites.size()].path, Pick::any);
                for (unsigned changes = random_() % 3; changes > 0; --changes)
                    draw(static_cast<int>(random_() % plan_.pools.size()));
            }
            compare();
        }
    }

    int report() {
        std::fprintf(out(), "inputs %ld kernels %ld printed %ld different %ld\n", inputs_, with_kernel_,
                     with_text_, different_);
        for (std::size_t i = 0; i < plan_.sites.size(); ++i)
            if (reached_[i])
                std::fprintf(out(), "reached %zu\n", i);
            else if (taker_[i] >= 0)
                std::fprintf(out(), "taken %zu %d\n", i, plan_.sites[sites_of_.at(taker_[i])].line);
        std::fflush(out());
        return different_ ? 1 : 0;
    }

  private:
    std::FILE *out() { return printed_.report(); }

    void set(const Setting &setting) {
        chosen_[static_cast<std::size_t>(setting.first)] = setting.second;
        const Value &value =
            plan_.pools[static_cast<std::size_t>(setting.first)][static_cast<std::size_t>(setting.second)];
        input_->set(setting.first, value.number, value.text);
    }
    void draw(int field) {
        const std::size_t size = plan_.pools[static_cast<std::size_t>(field)].size();
        if (size)
            set({field, static_cast<int>(random_() % size)});
    }
    void draw_all() {
        input_->clear();
        chosen_.assign(plan_.pools.size(), -1);
        for (std::size_t field = 0; field < plan_.pools.size(); ++field)
            draw(static_cast<int>(field));
    }
    enum class Pick { last, first, any };
    // Last first: sites for smaller sizes stand before those for larger ones.
    void apply(const std::vector<std::vector<Setting>> &domains, Pick pick) {
        for (const std::vector<Setting> &allowed : domains)
            set(pick == Pick::last    ? allowed.back()
                : pick == Pick::first ? allowed.front()
                                      : allowed[random_() % allowed.size()]);
    }

    Outcome run(void *function) {
        oracle::calls().clear();
        Outcome outcome;
        outcome.result = input_->call(function);
        outcome.calls = oracle::calls();
        outcome.printed = printed_.take();
        return outcome;
    }

    Outcome compare() {
        const Outcome wanted = run(original_), got = run(rewritten_);
        ++inputs_;
        with_kernel_ += !wanted.calls.empty();
        with_text_ += !wanted.printed.empty();
        if (!(wanted == got) && ++different_ <= 20)
            show(wanted, got);
        return wanted;
    }

    void note(std::size_t number, const Outcome &outcome) {
        const Site &site = plan_.sites[number];
        bool called = false;
        for (int call : outcome.calls) {
            if (!site.together.count(call)) {
                if (taker_[number] < 0)
                    taker_[number] = call;
                return;
            }
            called |= site.symbols.count(call) > 0;
        }
        if (called)
            reached_[number] = true;
    }

    void show(const Outcome &wanted, const Outcome &got) {
        std::fprintf(out(), "difference for");
        for (std::size_t i = 0; i < chosen_.size(); ++i)
            if (chosen_[i] >= 0) {
                const Value &value = plan_.pools[i][static_cast<std::size_t>(chosen_[i])];
                std::fprintf(out(), " %s=%g%s", plan_.names[i].c_str(), value.number, value.text.c_str());
            }
        for (const Outcome *one : {&wanted, &got}) {
            std::fprintf(out(), "\n  %s: returned %g, printed \"%s\"",
                         one == &wanted ? "original" : "rewritten", one->result, one->printed.c_str());
            for (int call : one->calls)
                std::fprintf(out(), "\n    %s %s", oracle::blobs[call], oracle::symbols[call]);
        }
        std::fprintf(out(), "\n");
    }

    Plan plan_;
    void *original_, *rewritten_;
    std::mt19937_64 random_;
    std::unique_ptr<oracle::Input> input_;
    std::vector<int> chosen_;
    std::vector<bool> reached_;
    std::vector<int> taker_;
    std::unordered_map<int, std::size_t> sites_of_;
    long inputs_ = 0, with_kernel_ = 0, with_text_ = 0, different_ = 0;
    Printed printed_;
};

struct Job {
    char **arguments;
    int status = 2;
};

void *work(void *given) {
    Job &job = *static_cast<Job *>(given);
    char **words = job.arguments;
    Oracle oracle(read_plan(words[3]), load(words[1]), load(words[2]), std::strtoul(words[6], nullptr, 10));
    oracle.aim(read_reached(words[4]));
    oracle.random(std::strtol(words[5], nullptr, 10));
    job.status = oracle.report();
    return nullptr;
}

} // namespace

// Time is not the same twice: of a timed kernel, the number of calls is compared. Timers ask this function,
// which stands before the HIP library's because the program exports it.
extern "C" int hipEventElapsedTime(float *milliseconds, void *, void *) {
    *milliseconds = 8;
    return 0;
}

int main(int count, char **words) {
    if (count != 7) {
        std::fprintf(stderr, "usage: driver ORIGINAL REWRITTEN PLAN REACHED RANDOM SEED\n");
        return 2;
    }
    // An unoptimised dispatcher keeps a copy of the arguments for each of its thousands of sites on the
    // stack.
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::size_t{1} << 30);
    pthread_t thread;
    Job job{words};
    if (pthread_create(&thread, &attributes, work, &job) != 0 || pthread_join(thread, nullptr) != 0)
        return 2;
    return job.status;
}
