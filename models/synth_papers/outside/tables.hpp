// The tables that replay.cpp reads: a machine's links, and transfers as `synth show RECORD --csv` prints them.

#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

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

inline std::vector<std::string> cells(const std::string& line, char separator)
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
inline std::vector<std::map<std::string, std::string>> table(const char* path)
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

inline std::vector<long long> numbers(const std::map<std::string, std::string>& row, const std::string& name)
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

inline long long number(const std::map<std::string, std::string>& row, const std::string& name)
{
  const auto found = numbers(row, name);
  if (found.size() != 1)
    throw std::invalid_argument(name + ": must be one whole number");
  return found.front();
}

inline std::map<long long, Link> read_links(const char* path)
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

inline std::vector<Transfer> read_transfers(const char* path, const std::map<long long, Link>& links)
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
