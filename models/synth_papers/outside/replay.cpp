// A schedule's transfers on SimGrid's links: when does the last one arrive?
//
//   g++ -std=c++17 -O1 models/synth_papers/outside/replay.cpp -lsimgrid -o replay
//   replay LINKS.csv TRANSFERS.csv one-at-a-time|whole-routes|fair [TIMES.csv]
//
// LINKS.csv: link,src,dst,bandwidth,latency,group (bytes/s, s; group may be empty). TRANSFERS.csv: what
// `synth show RECORD --csv` prints. Of its times only two things are used: which arrivals of a piece at a rank came
// before a transfer of it began there (what it depends on), and in which order transfers begin on a link. Everything
// becomes a graph of steps: a flow on one or several links without latency, which SimGrid's solver gives its rate, and a
// message of no bytes over a link that has nothing but a latency. A step begins when all that it waits for has ended.
//
//   one-at-a-time  every hop is a flow of its own on its link, which begins a latency after the hop before it began,
//                  and when the hop before it on this link (or on its group) has ended
//   whole-routes   the same, but one flow takes all links of the route at once, at the rate of the slowest
//   fair           whole routes, no order on links: what is ready begins, and SimGrid shares the links out (max-min)
//
// Prints `simgrid VERSION`, `steps N` and `seconds T`. TIMES.csv gets row,begin_s,end_s. Exit code 2: bad input;
// 3: transfers that wait for one another.

#include "tables.hpp"

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sg = simgrid::s4u;
using Event = std::vector<size_t>; // numbers of steps: all of them have ended

// A message of SimGrid's from a host, or where there is none, nothing that takes time.
struct Step {
  sg::Host* from           = nullptr;
  unsigned long long bytes = 0;
  std::vector<size_t> next; // steps that wait for this one
  size_t waits = 0;         // for so many others
  bool ended   = false;
  double begin = 0, end = 0; // SimGrid's seconds
  sg::CommPtr message;
};

struct Steps {
  std::vector<size_t> begun, flows; // of every hop, or one for all of them
  Event arrived;                    // the last arrival
};

// A machine of SimGrid: links, and a host for every route that is used (its way out; all lead to one end).
class Machine {
public:
  Machine(const std::map<long long, Link>& links, double unit) : links_(links), unit_(unit)
  {
    zone_ = sg::create_star_zone("machine");
    end_  = zone_->create_host("end", 1.0)->seal();
    zone_->add_route(nullptr, end_->get_netpoint(), nullptr, nullptr, std::vector<sg::LinkInRoute>{}, false);
  }

  // the host from which a message takes all these links at once; their groups too, where links are shared
  sg::Host* over(std::vector<long long> route, bool with_groups)
  {
    std::sort(route.begin(), route.end());
    auto found = hosts_.find(route);
    if (found == hosts_.end()) {
      std::vector<sg::LinkInRoute> on;
      std::map<std::string, bool> groups;
      for (long long link : route) {
        on.emplace_back(shared(std::to_string(link), links_.at(link).bandwidth));
        if (const auto& group = links_.at(link).group; with_groups && not group.empty() && not groups[group]) {
          groups[group] = true;
          on.emplace_back(shared("group " + group, of_group(group)));
        }
      }
      found = hosts_.emplace(route, host("route", on)).first;
    }
    return found->second;
  }

  // the host from which a message takes this long, however many there are
  sg::Host* delay(double latency)
  {
    auto found = delays_.find(latency);
    if (found == delays_.end()) {
      auto* link = zone_->create_link("latency " + std::to_string(delays_.size()), 1.0)
                       ->set_latency(latency / unit_)
                       ->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE)
                       ->seal();
      found = delays_.emplace(latency, host("latency of", {sg::LinkInRoute(link)})).first;
    }
    return found->second;
  }

  sg::Host* end() const { return end_; }

  void seal() { zone_->seal(); }

private:
  sg::Host* host(const std::string& kind, const std::vector<sg::LinkInRoute>& on)
  {
    auto* made = zone_->create_host(kind + " " + std::to_string(hosts_.size() + delays_.size()), 1.0)->seal();
    zone_->add_route(made->get_netpoint(), nullptr, nullptr, nullptr, on, false);
    return made;
  }

  const sg::Link* shared(const std::string& name, double bandwidth)
  {
    auto found = made_.find(name);
    if (found == made_.end())
      found = made_.emplace(name, zone_->create_link(name, bandwidth * unit_)->set_latency(0)->seal()).first;
    return found->second;
  }

  double of_group(const std::string& group) const
  {
    double rate = 0;
    for (const auto& [number, link] : links_)
      if (link.group == group) {
        if (rate != 0 && rate != link.bandwidth)
          throw std::invalid_argument("group " + group + ": links of several bandwidths cannot be shared out fairly");
        rate = link.bandwidth;
      }
    return rate;
  }

  const std::map<long long, Link>& links_;
  double unit_; // seconds that SimGrid's second stands for
  sg::NetZone* zone_;
  sg::Host* end_;
  std::map<std::vector<long long>, sg::Host*> hosts_;
  std::map<double, sg::Host*> delays_;
  std::map<std::string, const sg::Link*> made_;
};

// The graph of steps of all transfers.
class Replay {
public:
  Replay(const std::map<long long, Link>& links, const std::vector<Transfer>& transfers, const std::string& mode,
         double unit)
      : links_(links), transfers_(transfers), hop_by_hop_(mode == "one-at-a-time"), fair_(mode == "fair"),
        machine_(links, unit), made_(transfers.size())
  {
    std::vector<size_t> order(transfers.size());
    for (size_t i = 0; i < order.size(); i++)
      order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return transfers[a].start < transfers[b].start; });
    for (size_t i : order)
      add(i);
    if (not fair_)
      order_links();
    machine_.seal();
    sg::Activity::on_completion_cb([this](const sg::Activity& one) { ended(running_.at(&one)); });
  }

  void start()
  {
    std::vector<size_t> first;
    for (size_t n = 0; n < steps_.size(); n++)
      if (steps_[n].waits == 0)
        first.push_back(n);
    for (size_t n : first)
      begin(n);
  }

  size_t steps() const { return steps_.size(); }

  bool all_ended() const
  {
    return std::all_of(steps_.begin(), steps_.end(), [](const auto& one) { return one.ended; });
  }

  void write(const char* path, double unit) const
  {
    std::ofstream file(path);
    file.precision(17);
    file << "row,begin_s,end_s\n";
    for (size_t i = 0; i < made_.size(); i++) {
      double end = 0;
      for (size_t n : made_[i].arrived)
        end = std::max(end, steps_[n].end);
      file << i << ',' << steps_[made_[i].flows.front()].begin * unit << ',' << end * unit << '\n';
    }
  }

private:
  // SimGrid hears of a message only now: it walks over all that it has heard of whenever one ends
  void begin(size_t n)
  {
    auto& one = steps_[n];
    one.begin = sg::Engine::get_clock();
    if (one.from == nullptr) {
      finish(n);
      return;
    }
    one.message = sg::Comm::sendto_init(one.from, machine_.end());
    one.message->set_payload_size(one.bytes);
    running_[one.message.get()] = n;
    one.message->start();
  }

  void ended(size_t n)
  {
    running_.erase(steps_[n].message.get());
    finish(n);
  }

  void finish(size_t n)
  {
    steps_[n].ended = true;
    steps_[n].end   = sg::Engine::get_clock();
    for (size_t next : steps_[n].next)
      if (--steps_[next].waits == 0)
        begin(next);
  }

  // `after` begins when all of `before` has ended
  void wait(const Event& before, size_t after)
  {
    for (size_t n : before)
      steps_[n].next.push_back(after);
    steps_[after].waits += before.size();
  }

  size_t kept(sg::Host* from, unsigned long long bytes = 0)
  {
    steps_.emplace_back();
    steps_.back().from  = from;
    steps_.back().bytes = bytes;
    return steps_.size() - 1;
  }

  Event later(const Event& event, double latency)
  {
    if (latency == 0)
      return event;
    const size_t delay = kept(machine_.delay(latency));
    wait(event, delay);
    return {delay};
  }

  // what must have arrived at the transfer's rank before it begins: all of its piece that had come by then
  Event needed(const Transfer& one) const
  {
    Event found;
    if (const auto there = arrivals_.find({one.piece, one.src}); there != arrivals_.end())
      for (const auto& [tick, event] : there->second)
        if (tick <= one.start)
          found.insert(found.end(), event.begin(), event.end());
    return found;
  }

  // A flow over the links. Where hops begin with it, what takes no time and waits for all that it waits for.
  void lay(Steps& made, const Event& before, const std::vector<long long>& route, unsigned long long bytes, bool more)
  {
    const size_t flow = kept(machine_.over(route, fair_), bytes);
    made.flows.push_back(flow);
    made.begun.push_back(more ? kept(nullptr) : flow);
    wait(before, made.begun.back());
    if (more)
      wait({made.begun.back()}, flow);
  }

  void add(size_t i)
  {
    const auto& one = transfers_[i];
    auto& made      = made_[i];
    // per node of the route: when the data's head has come there, and its end
    std::map<long long, Event> head{{one.src, needed(one)}}, tail{{one.src, {}}};
    if (not hop_by_hop_) {
      std::vector<long long> route;
      for (const auto& hop : one.hops)
        route.push_back(hop.link);
      lay(made, head[one.src], route, one.bytes, false);
      tail[one.src] = {made.flows.back()};
    }
    for (const auto& hop : one.hops) {
      const double latency = links_.at(hop.link).latency;
      Event end            = tail.at(hop.src);
      if (hop_by_hop_) {
        lay(made, head.at(hop.src), {hop.link}, one.bytes, hop.arrive < 0);
        if (hop.arrive < 0)
          head[hop.dst] = later({made.begun.back()}, latency);
        end.push_back(made.flows.back());
      }
      tail[hop.dst] = later(end, latency);
      if (hop.arrive >= 0) {
        arrivals_[{one.piece, hop.dst}].push_back({hop.arrive, tail[hop.dst]});
        made.arrived.insert(made.arrived.end(), tail[hop.dst].begin(), tail[hop.dst].end());
      }
    }
  }

  // What is sent over a link, or over the links of a group, comes one after the other, in the order of the table.
  void order_links()
  {
    std::map<std::string, std::vector<std::tuple<long long, size_t, size_t>>> uses; // tick, transfer, hop
    for (size_t i = 0; i < transfers_.size(); i++)
      for (size_t k = 0; k < transfers_[i].hops.size(); k++) {
        const auto& hop   = transfers_[i].hops[k];
        const auto& group = links_.at(hop.link).group;
        uses[std::to_string(hop.link)].push_back({hop.start, i, k});
        if (not group.empty())
          uses["group " + group].push_back({hop.start, i, k});
      }
    for (auto& [name, on] : uses) {
      std::sort(on.begin(), on.end());
      for (size_t n = 1; n < on.size(); n++) {
        const auto& [before_tick, before, before_hop] = on[n - 1];
        const auto& [tick, after, hop]                = on[n];
        if (before != after) // of one transfer, links of a group may be occupied at once
          wait({made_[before].flows[hop_by_hop_ ? before_hop : 0]}, made_[after].begun[hop_by_hop_ ? hop : 0]);
      }
    }
  }

  const std::map<long long, Link>& links_;
  const std::vector<Transfer>& transfers_;
  bool hop_by_hop_, fair_;
  Machine machine_;
  std::vector<Steps> made_;
  std::vector<Step> steps_;
  std::map<const sg::Activity*, size_t> running_;
  std::map<std::pair<long long, long long>, std::vector<std::pair<long long, Event>>> arrivals_; // by piece and node
};

// Seconds that a second of SimGrid's stands for: the time of the largest transfer on the slowest link. SimGrid compares
// times with an absolute tolerance, which is then small beside every time here.
static double unit_of(const std::map<long long, Link>& links, const std::vector<Transfer>& transfers)
{
  double slowest = std::numeric_limits<double>::infinity(), most = 1;
  for (const auto& [number, link] : links)
    slowest = std::min(slowest, link.bandwidth);
  for (const auto& one : transfers)
    most = std::max(most, double(one.bytes));
  return most / slowest;
}

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  // nothing but the links' own bandwidth: no factors, no windows, no acknowledgements on the way back
  for (const char* setting : {"network/model:CM02", "network/bandwidth-factor:1", "network/latency-factor:1",
                              "network/weight-S:0", "network/TCP-gamma:0", "network/crosstraffic:0",
                              "surf/precision:1e-9", "maxmin/precision:1e-9"})
    sg::Engine::set_config(setting);
  const std::string mode = argc > 3 ? argv[3] : "";
  if (argc < 4 || argc > 5 || (mode != "one-at-a-time" && mode != "whole-routes" && mode != "fair")) {
    std::fprintf(stderr, "usage: replay LINKS.csv TRANSFERS.csv one-at-a-time|whole-routes|fair [TIMES.csv]\n");
    return 2;
  }
  try {
    const auto links     = read_links(argv[1]);
    const auto transfers = read_transfers(argv[2], links);
    const double unit    = unit_of(links, transfers);
    Replay replay(links, transfers, mode, unit);
    replay.start();
    engine.run();
    if (not replay.all_ended()) {
      std::fprintf(stderr, "transfers wait for one another\n");
      return 3;
    }
    std::printf("simgrid %d.%d.%d\nsteps %zu\nseconds %.17g\n", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR,
                SIMGRID_VERSION_PATCH, replay.steps(), sg::Engine::get_clock() * unit);
    if (argc == 5)
      replay.write(argv[4], unit);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
