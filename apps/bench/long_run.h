// A run of hours: what it measures one after the other, with progress, Ctrl-C and a journal that the same
// command goes on with; and what a reader of its report must know about when and with what it was made.
#pragma once

#include <coppice/error.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "bench/journal.h"

namespace coppice::app {

struct Work {
  std::string key;    // in the journal
  std::string label;  // of the progress
  double weight = 1;  // what it takes, in answers
  std::function<Result<nlohmann::ordered_json>()> measure;
};

// What is not in the journal yet. False: stopped by Ctrl-C; what is finished is in the journal.
Result<bool> run_all(std::span<const Work> works, Journal& journal);

// FILE.journal; empty where nobody asked for a file.
std::string journal_path(const std::string& report);
void note_stopped(const std::string& report);

// Of the moment: UTC, and how busy the machine is.
nlohmann::ordered_json moment_json();
// {part: {"path", "hash"}}; the hash of a file that is not there is null.
nlohmann::ordered_json files_json(const std::map<std::string, std::string>& files);

}  // namespace coppice::app
