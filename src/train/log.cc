#include "train/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <sstream>

#include "base/check.h"
#include "base/os.h"

namespace coppice::core::train {
namespace {

constexpr const char* kColumns =
    "step,tokens,seconds,rate,loss,top1,top4,top8,overlap,accepted,tokens_per_second,seconds_left\n";

std::string to_csv(const LogLine& line) {
  return fmt::format("{},{},{:.1f},{:.3e},{:.5f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.1f},{:.0f}\n",
                     line.step, line.tokens, line.seconds, line.rate, line.loss, line.top1, line.top4,
                     line.top8, line.overlap, line.accepted, line.tokens_per_second, line.seconds_left);
}

bool from_csv(const std::string& text, LogLine& line) {
  long long step = 0, tokens = 0;
  const int read =
      std::sscanf(text.c_str(), "%lld,%lld,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &step, &tokens,
                  &line.seconds, &line.rate, &line.loss, &line.top1, &line.top4, &line.top8, &line.overlap,
                  &line.accepted, &line.tokens_per_second, &line.seconds_left);
  line.step = step;
  line.tokens = tokens;
  return read == 12;
}

Status write_text(const std::string& path, const std::string& text) {
  return write_file(path, [&](const Append& append) { return append(std::as_bytes(std::span(text))); });
}

// One panel of the plot.
struct Panel {
  const char* name;
  double top;  // of the picture, in pixels
  std::vector<std::pair<const char*, double LogLine::*>> curves;
};

constexpr double kLeft = 60, kWidth = 620, kHeight = 150;
constexpr const char* kColours[] = {"#0b62a4", "#d1495b", "#2e8b57", "#8a6d3b"};

std::string draw(const Panel& panel, const std::vector<LogLine>& lines) {
  double low = INFINITY, high = -INFINITY;
  for (const LogLine& line : lines) {
    for (const auto& curve : panel.curves) {
      low = std::min(low, line.*curve.second);
      high = std::max(high, line.*curve.second);
    }
  }
  if (!(high > low)) high = low + 1;
  const double last = std::max<double>(1, static_cast<double>(lines.back().tokens));
  std::string out = fmt::format(
      "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n"
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#bbb\"/>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.3g}</text><text x=\"{}\" y=\"{}\" "
      "text-anchor=\"end\">{:.3g}</text>\n",
      kLeft, panel.top - 6, panel.name, kLeft, panel.top, kWidth, kHeight, kLeft - 4, panel.top + 10, high,
      kLeft - 4, panel.top + kHeight, low);
  for (std::size_t c = 0; c < panel.curves.size(); ++c) {
    std::string points;
    for (const LogLine& line : lines) {
      const double x = kLeft + kWidth * static_cast<double>(line.tokens) / last;
      const double y = panel.top + kHeight * (high - line.*panel.curves[c].second) / (high - low);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
    }
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", points,
                       kColours[c]);
    out += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", kLeft + kWidth + 6,
                       panel.top + 14 + 16 * static_cast<double>(c), kColours[c], panel.curves[c].first);
  }
  return out;
}

}  // namespace

Result<Log> Log::open(std::string path, bool resume, std::int64_t step) {
  Log log;
  log.path_ = std::move(path);
  if (resume && std::filesystem::exists(log.path_)) {
    COPPICE_TRY(const std::string text, read_file(log.path_));
    std::istringstream in(text);
    LogLine line;
    for (std::string row; std::getline(in, row);)
      if (from_csv(row, line) && line.step <= step) log.lines_.push_back(line);
  }
  return log;
}

Status Log::add(const LogLine& line) {
  lines_.push_back(line);
  std::string text = kColumns;
  for (const LogLine& each : lines_) text += to_csv(each);
  COPPICE_TRY_STATUS(write_text(path_, text));
  const std::filesystem::path csv(path_);
  return write_text(std::filesystem::path(csv).replace_extension(".svg").string(),
                    plot(lines_, csv.stem().string()));
}

std::string plot(const std::vector<LogLine>& lines, const std::string& title) {
  const Panel panels[] = {
      {"loss", 50, {{"training", &LogLine::loss}}},
      {"held-out agreement",
       240,
       {{"top 1", &LogLine::top1},
        {"top 4", &LogLine::top4},
        {"top 8", &LogLine::top8},
        {"overlap", &LogLine::overlap}}},
      {"tokens a pass, estimated", 430, {{"accepted", &LogLine::accepted}}},
  };
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"780\" height=\"620\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"780\" height=\"620\" fill=\"white\"/>\n";
  std::string safe;
  for (const char c : title) safe += c == '<' || c == '&' || c == '>' ? '_' : c;
  out += fmt::format("<text x=\"{}\" y=\"22\" font-size=\"14\">{}</text>\n", kLeft, safe);
  if (!lines.empty()) {
    for (const Panel& panel : panels) out += draw(panel, lines);
    out += fmt::format("<text x=\"{}\" y=\"605\" text-anchor=\"end\">{} tokens learned from</text>\n",
                       kLeft + kWidth, lines.back().tokens);
  }
  return out + "</svg>\n";
}

}  // namespace coppice::core::train
