/* Links as queues: a message passes one after the other, at each behind those that came before it.
 *
 *   host's way up -> (group's way up -> group's way down) -> host's way down
 *
 * A link takes bytes / speed for a message; its first byte is at the next link after the latency.
 * A message on an idle way takes latency + bytes / speed of the slowest link. SimGrid's own model, of
 * flows that share links, needs time with the fourth power of the hosts here, where each sends to
 * each; this one needs three events a message.
 *
 * Of a host the platform file says by properties: speed (bytes a second), latency (s), group and
 * group_speed (0: groups are not limited), pairs (1: a group has a link to each other group, as in a
 * dragonfly; 0: one for all, as in a tree), stall_at and stall (s: its links stand still).
 *
 * Each rank has a copy of the program's variables: what all share is found by the environment. */
#include "links.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>
#include <tuple>
#include <vector>

#include <unistd.h>

namespace sg4 = simgrid::s4u;

namespace {

constexpr size_t LEAST_FOLDED = 1024; /* bytes: of larger ones, where memory is folded, values are wrong */

struct Link {
    double speed, stall_at, stall;
    double free_at = 0;
};

struct Rank;

struct Host {
    double latency;
    std::string group;
    Link *up, *down;
    std::list<Rank *> waiting; /* for others of the host */
};

using Key = std::tuple<int, int, int, int>;

constexpr double DEADLOCK_SECS = 1000;

/* One that is under way or has come; its send may be gone by then. */
struct Flight {
    Key key;
    double length, latency;
    std::vector<char> bytes;
    std::vector<Link *> way;
    size_t at = 0;
    double whole = 0; /* when its last byte is there */
};

/* Lists that are empty take no memory. */
struct Pair {
    std::list<message *> receives;
    std::list<Flight *> came;
};

struct Rank {
    Host *host;
    sg4::SemaphorePtr wake, call; /* by a message; by a rank of the host */
    bool sleeps = false, fresh = false; /* fresh: some have ended since it last slept */
};

struct Shared {
    std::map<int, Rank> rank;
    std::map<std::string, Host> host;
    std::map<std::string, Link> group;
    std::map<Key, Pair> pair;
    double moved = 0; /* when a message last began or ended */
};

Shared &shared()
{
    static Shared *all;
    const char *known = getenv("SIM_SHARED");
    if (!all && known) sscanf(known, "%p", reinterpret_cast<void **>(&all));
    if (!all) {
        char text[32];
        all = new Shared;
        snprintf(text, sizeof text, "%p", static_cast<void *>(all));
        setenv("SIM_SHARED", text, 1);
    }
    return *all;
}

double property(const char *name)
{
    const char *text = sg4::this_actor::get_host()->get_property(name);
    return text ? atof(text) : 0;
}

void end(int rank, message *m)
{
    Rank &r = shared().rank[rank];
    shared().moved = sg4::Engine::get_clock();
    m->ended = true;
    r.fresh = !r.sleeps;
    if (!r.sleeps) return;
    r.sleeps = false;
    r.wake->release();
}

/* What comes before its receive waits for it, and the other way round. */
void meet(const Key &key, Flight *flight, message *receive)
{
    Pair &pair = shared().pair[key];
    if (flight) pair.came.push_back(flight);
    if (receive) pair.receives.push_back(receive);
    while (!pair.came.empty() && !pair.receives.empty()) {
        Flight *flight = pair.came.front();
        message *m = pair.receives.front();
        pair.came.pop_front();
        pair.receives.pop_front();
        memcpy(m->bytes, flight->bytes.data(), std::min(m->length, flight->bytes.size()));
        delete flight;
        end(m->to, m);
    }
    if (pair.came.empty() && pair.receives.empty()) shared().pair.erase(key);
}

/* The first byte is at the next link. sent: ends as the last one has left the host; else NULL. */
void enter(Flight *flight, message *sent)
{
    using simgrid::kernel::timer::Timer;
    if (flight->at == flight->way.size()) return meet(Key(flight->key), flight, nullptr);
    Link *link = flight->way[flight->at++];
    double begin = std::max(sg4::Engine::get_clock(), link->free_at);
    if (begin >= link->stall_at && begin < link->stall_at + link->stall) begin = link->stall_at + link->stall;
    link->free_at = begin + flight->length / link->speed;
    const double late = sent ? flight->latency : 0;
    flight->whole = std::max(flight->whole, link->free_at) + late;
    if (sent) Timer::set(link->free_at, [sent] { end(sent->from, sent); });
    const bool last = flight->at == flight->way.size();
    Timer::set(last ? flight->whole : begin + late, [flight] { enter(flight, nullptr); });
}

/* What each rank that sleeps waits for; ends the program. */
[[noreturn]] void tell_deadlock()
{
    std::map<int, std::string> waits;
    for (const auto &[key, pair] : shared().pair)
        if (!pair.receives.empty())
            waits[std::get<1>(key)] += " " + std::to_string(std::get<0>(key)) + " (tag " + std::to_string(std::get<2>(key)) + ")";
    for (const auto &[number, r] : shared().rank)
        if (r.sleeps)
            fprintf(stderr, "sim: rank %d waits for messages of %s\n", number, waits.count(number) ? waits[number].c_str() : "nobody");
    fprintf(stderr, "sim: deadlock: no message for %g s\n", DEADLOCK_SECS);
    _exit(1);
}

Link *group_link(const std::string &name)
{
    auto found = shared().group.find(name);
    if (found == shared().group.end())
        found = shared().group.emplace(name, Link{property("group_speed"), 0, 0}).first;
    return &found->second;
}

} // namespace

void links_join(int rank)
{
    Rank &r = shared().rank[rank];
    const std::string name = sg4::this_actor::get_host()->get_name();
    auto found = shared().host.find(name);
    if (found == shared().host.end()) {
        const char *group = sg4::this_actor::get_host()->get_property("group");
        const Link link{property("speed"), property("stall_at"), property("stall")};
        found = shared().host.emplace(name, Host{property("latency"), group ? group : "", new Link(link), new Link(link), {}}).first;
    }
    r.host = &found->second;
    r.wake = sg4::Semaphore::create(0);
    r.call = sg4::Semaphore::create(0);
}

void links_start(struct message *m)
{
    Shared &all = shared();
    all.moved = sg4::Engine::get_clock();
    if (!m->is_send) return meet({m->from, m->to, m->tag, m->comm}, nullptr, m);
    const Host *from = all.rank[m->from].host, *to = all.rank[m->to].host;
    const char *bytes = static_cast<const char *>(m->bytes);
    const bool kept = m->length < LEAST_FOLDED || !getenv("SIM_FOLD");
    auto *flight = new Flight{{m->from, m->to, m->tag, m->comm}, static_cast<double>(m->length), from->latency + to->latency,
                              std::vector<char>(bytes, bytes + (kept ? m->length : 0)), {}};
    if (from != to) {
        flight->way = {from->up};
        if (from->group != to->group && property("group_speed") > 0) {
            if (property("pairs") > 0) {
                flight->way.push_back(group_link(from->group + " " + to->group));
            } else {
                flight->way.push_back(group_link("up " + from->group));
                flight->way.push_back(group_link("down " + to->group));
            }
        }
        flight->way.push_back(to->down);
        return enter(flight, m);
    }
    end(m->from, m);
    enter(flight, nullptr);
}

void links_sleep(int rank, double secs)
{
    Rank &r = shared().rank[rank];
    if (r.fresh) {
        r.fresh = false;
        return;
    }
    r.sleeps = true;
    if (secs < 0)
        r.wake->acquire();
    else if (r.wake->acquire_timeout(secs))
        r.sleeps = false;
}

void links_wait_here(int rank, double secs)
{
    Rank &r = shared().rank[rank];
    if (shared().moved > 0 && sg4::Engine::get_clock() > shared().moved + DEADLOCK_SECS) tell_deadlock();
    r.host->waiting.push_back(&r);
    r.call->acquire_timeout(secs);
    r.host->waiting.remove(&r);
}

void links_wake_here(int rank)
{
    const auto waiting = shared().rank[rank].host->waiting; /* changes as they wake */
    for (Rank *r : waiting)
        r->call->release();
}
