#include "plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace coppice::app {
namespace {

constexpr double kWidth = 640, kHeight = 400, kLeft = 70, kRight = 20, kTop = 40, kBottom = 55;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// 1200000 -> "1.2M"
std::string short_number(double x) {
  if (x >= 1e6) return fmt::format("{:.3g}M", x / 1e6);
  if (x >= 1e3) return fmt::format("{:.3g}k", x / 1e3);
  return fmt::format("{:.3g}", x);
}

// From the data to the paper; a range of one value lies in the middle.
struct Scale {
  double least, most, from, to;
  double at(double v) const {
    return most > least ? from + (v - least) / (most - least) * (to - from) : (from + to) / 2;
  }
};

}  // namespace

std::string to_svg(const Plot& plot) {
  const auto x_of = [&](double x) { return plot.log_x ? std::log(x) : x; };
  Scale x{x_of(plot.points.front().first), x_of(plot.points.back().first), kLeft, kWidth - kRight};
  Scale y{plot.points.front().second, plot.points.front().second, kHeight - kBottom, kTop};
  for (const auto& point : plot.points) {
    y.least = std::min(y.least, point.second);
    y.most = std::max(y.most, point.second);
  }
  const double margin = 0.1 * (y.most - y.least);
  y.least -= margin;
  y.most += margin;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{}\" y=\"22\" font-size=\"15\">{}</text>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text x=\"16\" y=\"{}\" transform=\"rotate(-90 16 {})\" text-anchor=\"middle\">{}</text>\n",
      kWidth, kHeight, kLeft, escaped(plot.title), kWidth / 2, kHeight - 12, escaped(plot.x_label),
      kHeight / 2, kHeight / 2, escaped(plot.y_label));
  constexpr int kLines = 5;
  for (int i = 0; i < kLines; ++i) {
    const double value = y.least + (y.most - y.least) * i / (kLines - 1);
    svg += fmt::format(
        "<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#ddd\"/>\n<text x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{:.2f}</text>\n",
        kLeft, y.at(value), kWidth - kRight, kLeft - 6, y.at(value) + 4, value);
  }
  std::string line;
  for (const auto& [px, py] : plot.points) {
    const double at = x.at(x_of(px));
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", at, y.at(py));
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#1667b0\"/>\n<text x=\"{:.1f}\" y=\"{:.1f}\" "
        "text-anchor=\"middle\">{}</text>\n",
        at, y.at(py), at, kHeight - kBottom + 18, short_number(px));
  }
  return svg +
         fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#1667b0\" stroke-width=\"2\"/>\n</svg>\n", line);
}

}  // namespace coppice::app
