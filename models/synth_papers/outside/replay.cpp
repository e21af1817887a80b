// A schedule's transfers on SimGrid's links: when does the last one arrive?
//
//   replay LINKS.csv TRANSFERS.csv one-at-a-time|whole-routes|fair [TIMES.csv]
//
// LINKS.csv: link,src,dst,bandwidth,latency,group (bytes/s, s; group may be empty). TRANSFERS.csv: what
// `synth show RECORD --csv` prints. Of its times only two things are used: which arrivals of a piece at a rank came
// before a transfer of it began there (what it depends on), and in which order transfers begin on a link. Everything
// becomes a graph of SimGrid's activities: a flow on one or several links without latency, which SimGrid's solver gives
// its rate, and a message of no bytes over a link that has nothing but a latency.
//
//   one-at-a-time  every hop is a flow of its own on its link, which begins a latency after the hop before it began,
//                  and when the hop before it on this link (or on its group) has ended
//   whole-routes   the same, but one flow takes all links of the route at once, at the rate of the slowest
//   fair           whole routes, no order on links: what is ready begins, and SimGrid shares the links out (max-min)
//
// Prints `simgrid VERSION`, `activities N` and `seconds T`. TIMES.csv gets row,begin_s,end_s. Exit code 2: bad input;
// 3: transfers that wait for one another.

#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sg = simgrid::s4u;
using Event = std::vector<sg::CommPtr>; // all of them have ended

struct Link {
  long long src = 0, dst = 0;
  double bandwidth = 0, latency = 0;
  std::string group;
};

struct Hop {
  long long link = 0, src = 0, dst = 0;
  long long start = 0, arrive = 0; // ticks; arrive is -1 where it only passes a switch
};

struct Transfer {
  long long piece = 0, src = 0;
  unsigned long long bytes = 0;
  long long start = 0; // tick
  std::vector<Hop> hops;
};

struct Activities {
  std::vector<sg::CommPtr> begun, flows; // of every hop, or one for all of them
  Event arrived;                         // the last arrival
};

static std::vector<std::string> cells(const std::string& line, char separator)
{
  std::vector<std::string> found;
  std::stringstream stream(line);
  std::string cell;
  while (std::getline(stream, cell, separator))
    found.push_back(cell);
  if (not line.empty() && line.back() == separator)
    found.emplace_back();
  return found;
}

// The rows of a table as name -> value; no cell of ours has a comma.
static std::vector<std::map<std::string, std::string>> table(const char* path)
{
  std::ifstream file(path);
  if (not file)
    throw std::invalid_argument(std::string(path) + ": cannot be read");
  std::string line;
  std::getline(file, line);
  const auto names = cells(line, ',');
  std::vector<std::map<std::string, std::string>> rows;
  while (std::getline(file, line)) {
    const auto values = cells(line, ',');
    if (values.size() != names.size())
      throw std::invalid_argument(std::string(path) + ", row " + std::to_string(rows.size() + 1) + ": has " +
                                  std::to_string(values.size()) + " cells, not " + std::to_string(names.size()));
    rows.emplace_back();
    for (size_t k = 0; k < names.size(); k++)
      rows.back()[names[k]] = values[k];
  }
  return rows;
}

static std::vector<long long> numbers(const std::map<std::string, std::string>& row, const std::string& name)
{
  std::vector<long long> found;
  for (const auto& cell : cells(row.at(name), ' ')) {
    char* end = nullptr;
    found.push_back(std::strtoll(cell.c_str(), &end, 10));
    if (cell.empty() || *end != '\0')
      throw std::invalid_argument(name + ": '" + cell + "' is no whole number");
  }
  return found;
}

static long long number(const std::map<std::string, std::string>& row, const std::string& name)
{
  const auto found = numbers(row, name);
  if (found.size() != 1)
    throw std::invalid_argument(name + ": must be one whole number");
  return found.front();
}

static std::map<long long, Link> read_links(const char* path)
{
  std::map<long long, Link> links;
  for (const auto& row : table(path)) {
    const Link link{number(row, "src"), number(row, "dst"), std::stod(row.at("bandwidth")),
                    std::stod(row.at("latency")), row.at("group")};
    if (not(link.bandwidth > 0) || not(link.latency >= 0))
      throw std::invalid_argument(std::string(path) + ": link " + row.at("link") +
                                  ": bandwidth must be > 0, latency >= 0");
    links[number(row, "link")] = link;
  }
  return links;
}

static std::vector<Transfer> read_transfers(const char* path, const std::map<long long, Link>& links)
{
  std::vector<Transfer> transfers;
  for (const auto& row : table(path)) {
    Transfer one;
    one.piece        = number(row, "piece");
    one.src          = number(row, "src");
    one.start        = number(row, "start_tick");
    const auto bytes = number(row, "bytes");
    const auto link  = numbers(row, "file_links");
    const auto src   = numbers(row, "hop_src");
    const auto dst   = numbers(row, "hop_dst");
    const auto start = numbers(row, "hop_start");
    const auto come  = numbers(row, "hop_arrive");
    const size_t n   = link.size();
    if (bytes < 1 || n == 0 || src.size() != n || dst.size() != n || start.size() != n || come.size() != n)
      throw std::invalid_argument(std::string(path) + ": a transfer has a byte or more, and as many hops as links");
    one.bytes = bytes;
    for (size_t k = 0; k < n; k++) {
      const auto there = links.find(link[k]);
      if (there == links.end() || there->second.src != src[k] || there->second.dst != dst[k])
        throw std::invalid_argument(std::string(path) + ": there is no link " + std::to_string(link[k]) + " from " +
                                    std::to_string(src[k]) + " to " + std::to_string(dst[k]));
      one.hops.push_back({link[k], src[k], dst[k], start[k], come[k]});
    }
    transfers.push_back(one);
  }
  return transfers;
}

// A machine of SimGrid: links, and a host for every route that is used (its way out; all lead to one end).
class Machine {
public:
  Machine(const std::map<long long, Link>& links, double unit) : links_(links), unit_(unit)
  {
    zone_ = sg::create_star_zone("machine");
    end_  = zone_->create_host("end", 1.0)->seal();
    zone_->add_route(nullptr, end_->get_netpoint(), nullptr, nullptr, std::vector<sg::LinkInRoute>{}, false);
  }

  // bytes over all these links at once; their groups too, where links are shared
  sg::CommPtr flow(std::vector<long long> route, unsigned long long bytes, bool with_groups)
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
    auto made = sg::Comm::sendto_init(found->second, end_);
    made->set_payload_size(bytes);
    return made;
  }

  sg::CommPtr delay(double latency)
  {
    auto found = delays_.find(latency);
    if (found == delays_.end()) {
      auto* link = zone_->create_link("latency " + std::to_string(delays_.size()), 1.0)
                       ->set_latency(latency / unit_)
                       ->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE)
                       ->seal();
      found = delays_.emplace(latency, host("latency of", {sg::LinkInRoute(link)})).first;
    }
    auto made = sg::Comm::sendto_init(found->second, end_);
    made->set_payload_size(0);
    return made;
  }

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

// The graph of activities of all transfers.
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
  }

  void start()
  {
    for (const auto& one : activities_)
      one->vetoable_start();
  }

  size_t activities() const { return activities_.size(); }

  bool all_ended() const
  {
    return std::all_of(activities_.begin(), activities_.end(),
                       [](const auto& one) { return one->get_state() == sg::Activity::State::FINISHED; });
  }

  void write(const char* path, double unit) const
  {
    std::ofstream file(path);
    file.precision(17);
    file << "row,begin_s,end_s\n";
    for (size_t i = 0; i < made_.size(); i++) {
      double end = 0;
      for (const auto& one : made_[i].arrived)
        end = std::max(end, one->get_finish_time());
      file << i << ',' << made_[i].flows.front()->get_start_time() * unit << ',' << end * unit << '\n';
    }
  }

private:
  // `after` begins when all of `before` has ended; SimGrid refuses to hear it twice
  void wait(const Event& before, const sg::CommPtr& after)
  {
    for (const auto& one : before)
      if (waits_.emplace(one.get(), after.get()).second)
        one->add_successor(after);
  }

  sg::CommPtr kept(sg::CommPtr made)
  {
    activities_.push_back(made);
    return made;
  }

  Event later(const Event& event, double latency)
  {
    if (latency == 0)
      return event;
    auto delay = kept(machine_.delay(latency));
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
  void begin(Activities& made, const Event& before, const std::vector<long long>& route, unsigned long long bytes,
             bool more)
  {
    auto flow = kept(machine_.flow(route, bytes, fair_));
    made.flows.push_back(flow);
    made.begun.push_back(more ? kept(machine_.delay(0)) : flow);
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
      begin(made, head[one.src], route, one.bytes, false);
      tail[one.src] = {made.flows.back()};
    }
    for (const auto& hop : one.hops) {
      const double latency = links_.at(hop.link).latency;
      Event end            = tail.at(hop.src);
      if (hop_by_hop_) {
        begin(made, head.at(hop.src), {hop.link}, one.bytes, hop.arrive < 0);
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
  std::vector<Activities> made_;
  std::vector<sg::CommPtr> activities_;
  std::set<std::pair<const sg::Comm*, const sg::Comm*>> waits_;
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
    std::printf("simgrid %d.%d.%d\nactivities %zu\nseconds %.17g\n", SIMGRID_VERSION_MAJOR, SIMGRID_VERSION_MINOR,
                SIMGRID_VERSION_PATCH, replay.activities(), sg::Engine::get_clock() * unit);
    if (argc == 5)
      replay.write(argv[4], unit);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
