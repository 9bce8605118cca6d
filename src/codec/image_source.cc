#include "codec/image_source.h"

#include <array>
#include <charconv>
#include <map>

#include "codec/image_header.h"
#include "codec/requests/images.h"

namespace fathom::codec {

namespace {

constexpr std::string_view kUnsupported =
    "You have uploaded an unsupported image. Please make sure your image is valid and has one of "
    "the following formats: webp, png, jpeg, and gif.";

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<std::string> decode_percent(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes.push_back(text[i]);
      continue;
    }
    int byte = 0;
    const char* begin = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(byte));
    i += 2;
  }
  return bytes;
}

class Loader {
 public:
  Loader(std::span<const ImageSource> sources, const ImageLimits& limits,
         const ImagePlanConfig& config, ImageFetcher* fetcher)
      : sources_(sources), limits_(limits), config_(config), fetcher_(fetcher) {}

  LoadedImages load() && {
    if (sources_.size() > limits_.max_images) {
      set(ImageErrorKind::kTooManyImages,
          "Too many images: max " + std::to_string(limits_.max_images) +
              " images per request, got " + std::to_string(sources_.size()));
      return std::move(out_);
    }
    if (fetcher_ != nullptr) fetch_all();
    std::map<std::string_view, size_t> index_in_path;
    for (const ImageSource& source : sources_) {
      const size_t k = index_in_path[source.path]++;
      place_ =
          source.path + (source.path.empty() ? "" : ".") + "image[" + std::to_string(k) + "]: ";
      load_one(source);
      if (out_.error) break;
    }
    return std::move(out_);
  }

 private:
  void fetch_all() {
    std::vector<std::string> urls;
    for (const ImageSource& source : sources_) {
      if (source.kind == ImageSource::Kind::kUrl) urls.push_back(source.data);
    }
    if (urls.empty()) return;
    fetched_ = fetcher_->fetch(urls, limits_.max_image_bytes, limits_.max_total_bytes);
  }

  void set(ImageErrorKind kind, std::string text, bool retryable = false) {
    out_.error = ImageError{kind, retryable, std::move(text)};
  }
  void unsupported(ImageErrorKind kind) { set(kind, place_ + std::string(kUnsupported)); }
  void too_large() {
    set(ImageErrorKind::kImageTooLarge, place_ + "image file size exceeds limit " +
                                            std::to_string(limits_.max_image_bytes >> 20) + " MB");
  }

  void total_too_large(size_t bytes) {
    set(ImageErrorKind::kTotalSizeTooLarge,
        "Total image size exceeds the limit: max " + std::to_string(limits_.max_total_bytes >> 20) +
            " MB per request, got " + std::to_string(bytes >> 20) + " MB");
  }

  void load_one(const ImageSource& source) {
    LoadedImage image;
    switch (source.kind) {
      case ImageSource::Kind::kBytes:
        image.bytes = source.data;
        break;
      case ImageSource::Kind::kDataUrl:
        decode_data_url(source.data, &image.bytes);
        break;
      case ImageSource::Kind::kUrl:
        take_fetched(&image.bytes);
        break;
    }
    if (out_.error) return;
    if (image.bytes.empty()) return unsupported(ImageErrorKind::kEmptyImage);
    if (image.bytes.size() > limits_.max_image_bytes) return too_large();
    total_bytes_ += image.bytes.size();
    if (total_bytes_ > limits_.max_total_bytes) return total_too_large(total_bytes_);
    if (!sniff_image(image.bytes)) return unsupported(ImageErrorKind::kUnsupportedMediaType);
    const std::optional<ImageHeader> header = read_image_header(image.bytes);
    if (!header || header->width < 1 || header->height < 1) {
      return unsupported(ImageErrorKind::kDecode);
    }
    const int64_t max_side =
        sources_.size() >= limits_.many ? limits_.max_side_of_many : limits_.max_side;
    if (header->width > max_side || header->height > max_side) {
      return unsupported(ImageErrorKind::kImageDimensionsTooLarge);
    }
    Result<ImagePlan> plan = plan_image(header->width, header->height, source.detail, config_);
    if (!plan) return set(ImageErrorKind::kDecode, place_ + plan.error().message());
    image.plan = *plan;
    out_.images.push_back(std::move(image));
  }

  void take_fetched(std::string* bytes) {
    if (next_fetched_ >= fetched_.size()) {
      return set(ImageErrorKind::kUrlsOff,
                 place_ + "image URLs are not fetched here; send the image as a base64 data URL");
    }
    ImageFetcher::Fetched& fetched = fetched_[next_fetched_++];
    if (!fetched.error) {
      *bytes = std::move(fetched.bytes);
      return;
    }
    switch (*fetched.error) {
      case ImageErrorKind::kImageTooLarge:
        return too_large();
      case ImageErrorKind::kTotalSizeTooLarge:
        return total_too_large(limits_.max_total_bytes + 1);
      case ImageErrorKind::kUnsupportedMediaType:
        return unsupported(*fetched.error);
      case ImageErrorKind::kInvalidUrl:
        return set(*fetched.error, place_ +
                                       "the image URL must be http or https, without a "
                                       "password and with an ordinary port");
      case ImageErrorKind::kDestinationRejected:
        return set(*fetched.error,
                   place_ + "the image URL leads to an address that is not fetched from");
      default:
        return set(ImageErrorKind::kFetch, place_ + "Failed to download image from URL",
                   fetched.retryable);
    }
  }

  void decode_data_url(std::string_view url, std::string* bytes) {
    const size_t comma = url.find(',');
    if (lowered(url.substr(0, 5)) != "data:" || comma == std::string_view::npos) {
      return unsupported(ImageErrorKind::kInvalidDataUrl);
    }
    const std::string head = lowered(url.substr(5, comma - 5));
    const std::string_view body = url.substr(comma + 1);
    const std::string type = head.substr(0, head.find(';'));
    static constexpr std::array<std::string_view, 5> kTypes = {
        "image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp"};
    bool is_known = false;
    for (const std::string_view known : kTypes) is_known = is_known || type == known;
    if (!is_known) return unsupported(ImageErrorKind::kUnsupportedMediaType);
    const bool is_base64 = head.ends_with(";base64");
    // Checked before it is decoded.
    if ((is_base64 ? body.size() / 4 * 3 : body.size() / 3) > limits_.max_image_bytes + 3) {
      return too_large();
    }
    std::optional<std::string> decoded = is_base64 ? decode_base64(body) : decode_percent(body);
    if (!decoded) return unsupported(ImageErrorKind::kInvalidDataUrl);
    *bytes = *std::move(decoded);
  }

  std::span<const ImageSource> sources_;
  const ImageLimits& limits_;
  const ImagePlanConfig& config_;
  ImageFetcher* fetcher_;
  std::vector<ImageFetcher::Fetched> fetched_;
  size_t next_fetched_ = 0;
  LoadedImages out_;
  std::string place_;
  size_t total_bytes_ = 0;
};

}  // namespace

std::string_view image_error_name(ImageErrorKind kind) {
  static constexpr std::array<std::string_view, 13> kNames = {"EmptyImage",
                                                              "UnsupportedMediaType",
                                                              "InvalidDataUrl",
                                                              "ImageDimensionsTooLarge",
                                                              "Decode",
                                                              "ImageTooLarge",
                                                              "Fetch",
                                                              "UrlTooLong",
                                                              "InvalidUrl",
                                                              "TooManyImages",
                                                              "TotalSizeTooLarge",
                                                              "DestinationRejected",
                                                              "UrlsOff"};
  return kNames[static_cast<size_t>(kind)];
}

LoadedImages load_images(std::span<const ImageSource> sources, const ImageLimits& limits,
                         const ImagePlanConfig& config, ImageFetcher* fetcher) {
  return Loader(sources, limits, config, fetcher).load();
}

}  // namespace fathom::codec
