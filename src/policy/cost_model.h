// What a pass of the target costs: seconds by rows, with what its rows see. A table that is measured once
// (engine/measure_costs.h) and refined by every pass that runs.
//
// seconds = speed * (table(rows) + per_position * positions + per_row_position * row_positions). Rows that
// want no logits (of a prompt) count for less than one. The table rises in steps where a kernel's tile is
// full, so it is kept by number of rows, made isotonic, and interpolated between.
//
// A noisy neighbour slows all passes alike for a while: `speed` follows that quickly and cancels out of every
// comparison of passes. What is left over moves the table, slowly and never by more than a little a pass, so
// that a slow pass changes no decision.
#pragma once

#include <coppice/error.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::core {

struct PassShape {
  double rows = 0;           // in rows with logits
  double positions = 0;      // of the context, of all requests together
  double row_positions = 0;  // the same, once for each row

  void add_row(int context, int times = 1) {
    rows += times;
    row_positions += static_cast<double>(times) * context;
  }
  void add_request(int rows_of_it, int context) {
    positions += context;
    add_row(context, rows_of_it);
  }
};

struct CostPoint {
  double rows = 0, seconds = 0;
};

struct CostTable {
  std::vector<CostPoint> points;  // rows rise; at least one
  double per_position = 0, per_row_position = 0;
  double prompt_row = 1;  // what a row without logits is worth
};

class CostModel {
 public:
  explicit CostModel(CostTable table);

  double seconds(const PassShape& pass) const { return speed_ * unit(pass); }
  double prompt_row() const { return table_.prompt_row; }
  // A pass took so long.
  void refine(const PassShape& pass, double seconds);
  // As refined, at the speed it was measured at.
  CostTable table() const;
  std::uint64_t refined() const { return refined_; }  // passes

 private:
  struct Between {
    std::size_t below = 0;
    double share = 0;  // of the point above
  };
  Between find(double rows) const;
  double unit(const PassShape& pass) const;
  void make_isotonic();

  CostTable table_;
  std::vector<double> rising_;  // table_'s seconds, isotonic
  double speed_ = 1;
  std::uint64_t refined_ = 0;
};

// A typical value of what is seen again and again: it moves by a tenth of the way (of the logarithm), and no
// single value, however large, moves it by more than 5%. Until something was seen it is what was guessed.
class Typical {
 public:
  Typical() = default;
  explicit Typical(double guess) : value_(guess) {}
  void add(double value);
  double value() const { return value_; }

 private:
  double value_ = 0;
  bool seen_ = false;
};

// The table in a file, by machine, model and setup: `key` says them all, and a file with another key is not
// taken. A file that is damaged is an error that says how; who asked measures again.
std::string cost_path(const std::string& folder, std::string_view key);
Result<CostTable> load_costs(const std::string& path, std::string_view key);
// The same of the file's text; errors begin with `name`.
Result<CostTable> parse_costs(const std::string& text, std::string_view key, std::string_view name);
Status save_costs(const std::string& path, std::string_view key, const CostTable& table);

}  // namespace coppice::core
