#include "kernel/data/glyphs.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

#include "common/random.hpp"

namespace ganymede::kernel {
namespace {

/// The sizes below are in pixels of an image with this many pixels a side; larger images scale them up.
constexpr int kHandSide = 28;

struct Point {
  float x, y;  // to the right and down; the glyph's box is [0, 1] x [0, 1]
};

Point operator+(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(float s, Point a) { return {s * a.x, s * a.y}; }
float dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }

/// A quadratic Bezier curve; a straight stroke has its control point in the middle.
struct Stroke {
  Point from, control, to;
};

constexpr Stroke line(Point a, Point b) { return {a, {(a.x + b.x) / 2, (a.y + b.y) / 2}, b}; }

constexpr Stroke kZero[] = {{{.50F, .12F}, {.76F, .12F}, {.76F, .50F}},
                            {{.76F, .50F}, {.76F, .88F}, {.50F, .88F}},
                            {{.50F, .88F}, {.24F, .88F}, {.24F, .50F}},
                            {{.24F, .50F}, {.24F, .12F}, {.50F, .12F}}};
constexpr Stroke kOne[] = {line({.36F, .28F}, {.52F, .12F}), line({.52F, .12F}, {.52F, .88F})};
constexpr Stroke kTwo[] = {{{.27F, .30F}, {.27F, .12F}, {.50F, .12F}},
                           {{.50F, .12F}, {.74F, .12F}, {.74F, .32F}},
                           {{.74F, .32F}, {.74F, .50F}, {.26F, .88F}},
                           line({.26F, .88F}, {.76F, .88F})};
constexpr Stroke kThree[] = {{{.28F, .20F}, {.42F, .10F}, {.56F, .13F}}, {{.56F, .13F}, {.74F, .17F}, {.72F, .32F}},
                             {{.72F, .32F}, {.70F, .46F}, {.46F, .48F}}, {{.46F, .48F}, {.76F, .50F}, {.74F, .69F}},
                             {{.74F, .69F}, {.72F, .88F}, {.48F, .88F}}, {{.48F, .88F}, {.34F, .88F}, {.25F, .78F}}};
constexpr Stroke kFour[] = {line({.60F, .12F}, {.24F, .62F}), line({.24F, .62F}, {.78F, .62F}),
                            line({.60F, .12F}, {.60F, .88F})};
constexpr Stroke kFive[] = {line({.72F, .13F}, {.34F, .13F}),           line({.34F, .13F}, {.30F, .46F}),
                            {{.30F, .46F}, {.44F, .38F}, {.56F, .41F}}, {{.56F, .41F}, {.76F, .46F}, {.74F, .66F}},
                            {{.74F, .66F}, {.72F, .88F}, {.48F, .88F}}, {{.48F, .88F}, {.34F, .88F}, {.25F, .78F}}};
constexpr Stroke kSix[] = {{{.66F, .13F}, {.30F, .30F}, {.26F, .66F}},
                           {{.26F, .66F}, {.24F, .88F}, {.50F, .88F}},
                           {{.50F, .88F}, {.75F, .88F}, {.75F, .67F}},
                           {{.75F, .67F}, {.75F, .46F}, {.51F, .46F}},
                           {{.51F, .46F}, {.30F, .46F}, {.26F, .66F}}};
constexpr Stroke kSeven[] = {line({.25F, .13F}, {.76F, .13F}), {{.76F, .13F}, {.52F, .45F}, {.42F, .88F}}};
constexpr Stroke kEight[] = {{{.50F, .48F}, {.28F, .46F}, {.28F, .30F}}, {{.28F, .30F}, {.28F, .12F}, {.50F, .12F}},
                             {{.50F, .12F}, {.72F, .12F}, {.72F, .30F}}, {{.72F, .30F}, {.72F, .46F}, {.50F, .48F}},
                             {{.50F, .48F}, {.24F, .50F}, {.24F, .69F}}, {{.24F, .69F}, {.24F, .88F}, {.50F, .88F}},
                             {{.50F, .88F}, {.76F, .88F}, {.76F, .69F}}, {{.76F, .69F}, {.76F, .50F}, {.50F, .48F}}};
constexpr Stroke kNine[] = {{{.74F, .36F}, {.70F, .54F}, {.49F, .54F}},
                            {{.49F, .54F}, {.25F, .54F}, {.25F, .33F}},
                            {{.25F, .33F}, {.25F, .12F}, {.50F, .12F}},
                            {{.50F, .12F}, {.74F, .12F}, {.74F, .36F}},
                            {{.74F, .36F}, {.72F, .66F}, {.60F, .88F}}};

constexpr std::span<const Stroke> kDigits[] = {kZero, kOne, kTwo, kThree, kFour, kFive, kSix, kSeven, kEight, kNine};

float between(RandomStream& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random.uniform());
}

/// One writer's hand: how a glyph is turned, slanted, scaled and placed, and how thick its pen is.
struct Hand {
  Point right, down, centre;  // the glyph's two axes and its centre in the picture, in pixels
  float radius;               // half the pen's width, in pixels
  float brightness;           // the pen's grey value, from 0 to 255

  Hand(RandomStream& random, float larger) {
    // With t = tan(angle / 2) a rotation needs no sine: cos = (1 - t^2) / (1 + t^2), sin = 2 t / (1 + t^2). 0.1 is 11
    // degrees.
    const float t = between(random, -0.1F, 0.1F);
    const float cosine = (1 - t * t) / (1 + t * t), sine = 2 * t / (1 + t * t);
    const float slant = between(random, -0.2F, 0.15F);
    const float wide = 22 * between(random, 0.85F, 1.1F), tall = 22 * between(random, 0.9F, 1.1F);
    right = wide * Point{cosine, sine};
    down = tall * Point{slant * cosine - sine, slant * sine + cosine};
    centre = {between(random, 12.7F, 15.3F), between(random, 12.7F, 15.3F)};
    radius = between(random, 0.8F, 1.5F);
    brightness = between(random, 215, 255);
    for (Point* point : {&right, &down, &centre}) *point = larger * *point;
    radius *= larger;
  }

  /// Where the hand puts the glyph's point p, with a little noise, in pixels.
  Point place(Point p, RandomStream& random) const {
    const Point unsteady{p.x - 0.5F + between(random, -0.025F, 0.025F), p.y - 0.5F + between(random, -0.025F, 0.025F)};
    return centre + unsteady.x * right + unsteady.y * down;
  }
};

float distance_to_segment(Point p, Point a, Point b) {
  const Point along = b - a;
  const float length = dot(along, along);
  const float t = length > 0 ? std::clamp(dot(p - a, along) / length, 0.0F, 1.0F) : 0.0F;
  const Point off = p - a - t * along;
  return std::sqrt(dot(off, off));
}

/// A value for each pixel of a square image, row by row.
struct Canvas {
  int side;
  std::vector<float> values;
};

/// Lowers the distance of every pixel that the pen may touch to that between the pixel's centre and the segment from a
/// to b, if that is less. `reach`: how far from the segment the pen may touch a pixel, in pixels.
void draw_segment(Canvas& distance, Point a, Point b, float reach) {
  const auto pixel = [&](float x) { return std::clamp(static_cast<int>(x), 0, distance.side - 1); };
  const int left = pixel(std::min(a.x, b.x) - reach), right = pixel(std::max(a.x, b.x) + reach);
  const int top = pixel(std::min(a.y, b.y) - reach), bottom = pixel(std::max(a.y, b.y) + reach);
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) {
      const int at = y * distance.side + x;
      float& nearest = distance.values[static_cast<std::size_t>(at)];
      const Point centre{static_cast<float>(x) + 0.5F, static_cast<float>(y) + 0.5F};
      nearest = std::min(nearest, distance_to_segment(centre, a, b));
    }
}

/// Draws a digit. Returns the hand, and leaves in `distance` the share of each pixel that the pen covers, from 0 to 1.
Hand draw_digit(std::span<const Stroke> strokes, RandomStream& random, Canvas& distance) {
  constexpr int kSegments = 6;  // per stroke; they stay within half a pixel of the curve
  const Hand hand(random, static_cast<float>(distance.side) / kHandSide);
  std::fill(distance.values.begin(), distance.values.end(), 2.0F * static_cast<float>(distance.side));
  Point last_given{-1, -1}, last_placed{};
  for (const Stroke& stroke : strokes) {
    // A stroke that begins where the one before ended begins at the same placed point, so that strokes that touch in
    // the glyph touch in the picture.
    const bool joined = stroke.from.x == last_given.x && stroke.from.y == last_given.y;
    const Point from = joined ? last_placed : hand.place(stroke.from, random);
    const Point control = hand.place(stroke.control, random), to = hand.place(stroke.to, random);
    Point a = from;
    for (int i = 1; i <= kSegments; ++i) {
      const float t = static_cast<float>(i) / kSegments, s = 1 - t;
      const Point b = s * s * from + 2 * s * t * control + t * t * to;
      draw_segment(distance, a, b, hand.radius + 1);
      a = b;
    }
    last_given = stroke.to;
    last_placed = to;
  }
  // A pixel whose centre lies on the pen's edge is half covered.
  for (float& value : distance.values) value = std::clamp(hand.radius + 0.5F - value, 0.0F, 1.0F);
  return hand;
}

std::uint8_t byte(float value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F)); }

void paint_grey(const Canvas& covered, const Hand& hand, RandomStream& random, std::uint8_t* pixels) {
  for (const float part : covered.values) {
    const float noise = part > 0 ? between(random, -12, 12) : 0;
    *pixels++ = byte(part * hand.brightness + noise);
  }
}

/// Colours a glyph: a bright pen on a dark ground, each of which shades a little from one edge to the other.
void paint_colours(const Canvas& covered, RandomStream& random, std::uint8_t* pixels) {
  for (int channel = 0; channel < 3; ++channel) {
    const float pen = between(random, 130, 255), ground = between(random, 0, 110);
    const Point slope{between(random, -40, 40), between(random, -40, 40)};
    std::size_t at = 0;
    for (int y = 0; y < covered.side; ++y)
      for (int x = 0; x < covered.side; ++x) {
        const Point place{static_cast<float>(x) / static_cast<float>(covered.side) - 0.5F,
                          static_cast<float>(y) / static_cast<float>(covered.side) - 0.5F};
        const float part = covered.values[at++];
        *pixels++ = byte(ground + part * (pen - ground) + dot(slope, place) + between(random, -6, 6));
      }
  }
}

}  // namespace

Glyphs draw_glyphs(int count, std::uint64_t seed, ImageShape shape) {
  assert(shape.height == shape.width && shape.height >= kHandSide);
  RandomStream random(seed, "kernel/glyphs");
  Glyphs glyphs{{count, shape.height, shape.width, {}, shape.channels}, {}};
  const auto image_bytes = static_cast<std::size_t>(shape.pixels());
  glyphs.images.pixels.resize(static_cast<std::size_t>(count) * image_bytes);
  Canvas canvas{shape.height, std::vector<float>(image_bytes / static_cast<std::size_t>(shape.channels))};
  glyphs.labels.resize(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < glyphs.labels.size(); ++i) {
    const std::size_t digit = i % std::size(kDigits);
    glyphs.labels[i] = static_cast<std::uint8_t>(digit);
    const Hand hand = draw_digit(kDigits[digit], random, canvas);
    std::uint8_t* pixels = glyphs.images.pixels.data() + i * image_bytes;
    if (shape.channels == 1)
      paint_grey(canvas, hand, random, pixels);
    else
      paint_colours(canvas, random, pixels);
  }
  return glyphs;
}

}  // namespace ganymede::kernel
