#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include "weights/safetensors_bytes.h"

namespace fathom::weights {
namespace {

// Copied to the heap, so that a sanitizer sees any read past the end.
Result<std::vector<SafetensorsEntry>> parse(std::string_view file) {
  const std::vector<char> copy(file.begin(), file.end());
  return parse_safetensors(std::as_bytes(std::span(copy)), "f.safetensors");
}

void expect_refused(std::string_view file, StatusCode code, std::string_view part) {
  const auto result = parse(file);
  ASSERT_FALSE(result) << "accepted; expected an error with: " << part;
  EXPECT_EQ(result.error().code(), code) << result.error().to_string();
  EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().to_string();
  EXPECT_TRUE(result.error().message().starts_with("f.safetensors: "));
  EXPECT_LT(result.error().message().size(), 600u);
}

void expect_damaged(std::string_view header, size_t data_bytes, std::string_view part) {
  SCOPED_TRACE(header);
  expect_refused(safetensors_file(header, data_bytes), StatusCode::kDataLoss, part);
}

TEST(Safetensors, ListsTensorsByOffset) {
  const std::string file =
      safetensors_file(R"({"b":{"dtype":"F32","shape":[2,3],"data_offsets":[4,28]},)"
                       R"("__metadata__":{"format":"pt"},)"
                       R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                       R"("scalar":{"dtype":"F32","shape":[],"data_offsets":[28,32]},)"
                       R"("none":{"dtype":"I8","shape":[0,7],"data_offsets":[4,4]}}   )",
                       32);
  const auto tensors = parse(file);
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  ASSERT_EQ(tensors->size(), 4u);
  const int64_t data = static_cast<int64_t>(file.size()) - 32;
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].offset, data);
  EXPECT_EQ((*tensors)[0].dtype, DType::kBf16);
  EXPECT_EQ((*tensors)[1].name, "none");
  EXPECT_EQ((*tensors)[2].name, "b");
  EXPECT_EQ((*tensors)[2].shape, Shape(2, 3));
  EXPECT_EQ((*tensors)[2].offset, data + 4);
  EXPECT_EQ((*tensors)[3].shape.rank, 0);
}

TEST(Safetensors, ReadsWhatItWrites) {
  const std::vector<SafetensorsEntry> tensors = {{"x.weight", DType::kF8E4M3, Shape(4, 8), 0},
                                                 {"x.scale", DType::kF8E8M0, Shape(1, 1), 0},
                                                 {"odd \"name\"\n", DType::kF32, Shape(3), 0}};
  const std::string file = make_safetensors_header(tensors) + std::string(32 + 1 + 12, 'x');
  EXPECT_EQ((file.size() - 45) % 8, 0u);
  const auto read = parse(file);
  ASSERT_TRUE(read) << read.error().to_string();
  ASSERT_EQ(read->size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*read)[i].name, tensors[i].name);
    EXPECT_EQ((*read)[i].dtype, tensors[i].dtype);
    EXPECT_EQ((*read)[i].shape, tensors[i].shape);
  }
  EXPECT_EQ((*read)[2].offset, static_cast<int64_t>(file.size()) - 12);
}

TEST(Safetensors, EveryCutOfAFileIsRefused) {
  const std::string file = one_tensor_file("t", 40);
  for (size_t n = 0; n < file.size(); ++n) {
    EXPECT_FALSE(parse(std::string_view(file).substr(0, n))) << n << " bytes";
  }
  EXPECT_TRUE(parse(file));
}

TEST(Safetensors, HalfDownloadedShardSaysSo) {
  std::string file = one_tensor_file("layers.0.w", 1000);
  file.resize(file.size() - 500);
  expect_refused(
      file, StatusCode::kDataLoss,
      "tensor \"layers.0.w\": its data end at byte 1000, but the file has only 500 bytes "
      "of data: it is truncated; download it again");
}

TEST(Safetensors, BytesAfterTheLastTensorAreRefused) {
  expect_refused(one_tensor_file("t", 40) + "x", StatusCode::kDataLoss, "41 bytes of data");
}

TEST(Safetensors, AbsurdHeaderLengthsAreRefused) {
  for (const uint64_t length :
       {uint64_t{1000}, uint64_t{100'000'001}, uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    std::string file = one_tensor_file("t", 4);
    std::memcpy(file.data(), &length, sizeof length);
    expect_refused(file, StatusCode::kDataLoss, "header of");
  }
  expect_refused(safetensors_file("", 0), StatusCode::kDataLoss, "no JSON object");
  expect_refused("version https://git-lfs.github.com/spec/v1\n", StatusCode::kDataLoss,
                 "not a safetensors file");
}

TEST(Safetensors, BrokenJsonIsRefused) {
  expect_damaged("{", 0, "not valid JSON");
  expect_damaged("[]", 0, "no JSON object");
  expect_damaged("{}x", 0, "text after the JSON value");
  expect_damaged("{\"a\":}", 0, "not valid JSON");
  expect_damaged("{\"a\xff\":{}}", 0, "not valid JSON");
  expect_damaged(std::string("{\0}", 3), 0, "not valid JSON");
  expect_damaged("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}", 0, "too deep");
}

TEST(Safetensors, FieldsMustBeThereAndOfTheRightKind) {
  expect_damaged(R"({"t":1})", 0, "tensor \"t\": not a JSON object");
  expect_damaged(R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1, "no \"dtype\"");
  expect_damaged(R"({"t":{"dtype":7,"shape":[1],"data_offsets":[0,1]}})", 1, "no \"dtype\"");
  expect_damaged(R"({"t":{"dtype":"I8","data_offsets":[0,1]}})", 1, "no \"shape\"");
  expect_damaged(R"({"t":{"dtype":"I8","shape":3,"data_offsets":[0,1]}})", 1, "no \"shape\"");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1]}})", 1, "no \"data_offsets\"");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0]}})", 1,
                 "no \"data_offsets\"");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0,1,1]}})", 1, "data_offsets");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":["0",1]}})", 1, "data_offsets");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0,1],"x":1}})", 1,
                 "unknown field \"x\"");
  expect_damaged(R"({"__metadata__":[]})", 0, "__metadata__");
}

TEST(Safetensors, NegativeFractionalAndHugeNumbersAreRefused) {
  expect_damaged(R"({"t":{"dtype":"I8","shape":[-1],"data_offsets":[0,1]}})", 1, "no count: -1");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1.5],"data_offsets":[0,1]}})", 1, "no count");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[-1,0]}})", 1,
                 "bad data_offsets");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[1,0]}})", 1, "bad data_offsets");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0,1e0]}})", 1,
                 "bad data_offsets");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1],"data_offsets":[0,18446744073709551615]}})", 1,
                 "bad data_offsets");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[99999999999999999999],"data_offsets":[0,1]}})", 1,
                 "no count");
  expect_damaged(R"({"t":{"dtype":"I8","shape":[1e999],"data_offsets":[0,1]}})", 1, "");
  expect_damaged(R"({"t":{"dtype":"F32","shape":[4611686018427387904,2],"data_offsets":[0,1]}})", 1,
                 "overflows");
  // 2^32 * 2^32 wraps around to 0 bytes, which the offsets would confirm.
  expect_damaged(R"({"t":{"dtype":"I8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                 "overflows");
  expect_damaged(
      R"({"t":{"dtype":"I8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}})",
      1, "truncated");
}

TEST(Safetensors, ShapeMustAgreeWithOffsets) {
  expect_damaged(R"({"t":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,4]}})", 4,
                 "shape [2, 2] of BF16 needs 8 bytes, its data_offsets give 4");
}

TEST(Safetensors, OverlapsAndHolesAreRefused) {
  const char* overlap = R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                        R"("b":{"dtype":"I8","shape":[4],"data_offsets":[2,6]}})";
  expect_damaged(overlap, 6, "tensor \"b\": begins at byte 2 of the data, expected 4: it overlaps");
  const char* same = R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})";
  expect_damaged(same, 4, "overlaps");
  const char* hole = R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                     R"("b":{"dtype":"I8","shape":[4],"data_offsets":[5,9]}})";
  expect_damaged(hole, 9, "there is a hole");
  expect_damaged(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[1,5]}})", 5, "there is a hole");
}

TEST(Safetensors, DuplicateKeysAreRefused) {
  const char* tensors = R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                        R"("\u0061":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})";
  expect_damaged(tensors, 4, "the key \"a\" occurs twice");
  expect_damaged(R"({"a":{"dtype":"I8","shape":[4],"shape":[4],"data_offsets":[0,4]}})", 4,
                 "the key \"shape\" occurs twice");
}

TEST(Safetensors, UnknownTypesAndRanksAreRefused) {
  for (const char* dtype : {"F16", "I64", "U8", "F4", "f32", ""}) {
    expect_refused(safetensors_file("{\"t\":{\"dtype\":\"" + std::string(dtype) +
                                        "\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                                    1),
                   StatusCode::kFailedPrecondition, "expected F32, BF16, F8_E4M3, F8_E8M0 or I8");
  }
  expect_refused(
      safetensors_file(R"({"t":{"dtype":"I8","shape":[1,1,1,1],"data_offsets":[0,1]}})", 1),
      StatusCode::kFailedPrecondition, "4 dimensions");
}

TEST(Safetensors, ErrorsShowHostileNamesShortAndClean) {
  const std::string name(5000, 'n');
  expect_damaged("{\"" + name + "\":1}", 0, "nnn...\"");
  expect_damaged("{\"a\\u0007\\u001b[31m\":1}", 0, "tensor \"a??[31m\"");
}

TEST(Safetensors, ManyTensorsTakeLinearTime) {
  std::vector<SafetensorsEntry> tensors;
  for (int i = 0; i < 100000; ++i) {
    tensors.push_back({"layers.0.ffn.experts." + std::to_string(i), DType::kI8, Shape(0), 0});
  }
  const auto read = parse(make_safetensors_header(tensors));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->size(), 100000u);
}

}  // namespace
}  // namespace fathom::weights
