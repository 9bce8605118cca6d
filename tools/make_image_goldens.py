#!/usr/bin/env python3
"""Makes tests/data/images: small image files of all kinds, and what Pillow makes of them.

    python3 -m venv V && V/bin/pip install pillow==12.0.0 && V/bin/python tools/make_image_goldens.py

golden.json: for each file the RGB pixels (base64) with transparency blended on #FDFDFD (docs/spec/recipe.md
5.3), and for some the same scaled and padded to a size by ImageOps.pad.  The JPEGs have an EXIF orientation
where their name says so; their pixels are turned.
"""
import base64
import io
import json
import pathlib

from PIL import Image, ImageOps, features

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/images"
PADDED = {"rgb.jpg": [(98, 56), (14, 42), (37, 23)], "rgba.png": [(56, 56), (20, 13)], "large.png": [(42, 28), (126, 70)]}


def picture(width, height, channels):
    """Smooth colours with some edges."""
    data = bytearray()
    for y in range(height):
        for x in range(width):
            edge = 90 if (x // 5 + y // 4) % 3 == 0 else 0
            values = [x * 255 // width, y * 255 // height, (x * y) % 256 // 2 + edge, 255 - x * 200 // width]
            data += bytes(values[:channels])
    return Image.frombytes({1: "L", 3: "RGB", 4: "RGBA"}[channels], (width, height), bytes(data))


def encoded(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def oriented(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(picture(24, 10, 3), format="JPEG", quality=95, subsampling=0, exif=exif)


def files():
    rgb, rgba = picture(37, 23, 3), picture(31, 17, 4)
    yield "rgb.jpg", encoded(rgb, format="JPEG", quality=90)
    yield "progressive.jpg", encoded(rgb, format="JPEG", quality=90, progressive=True)
    yield "grey.jpg", encoded(picture(19, 11, 1), format="JPEG", quality=90)
    yield "cmyk.jpg", encoded(rgb.convert("CMYK"), format="JPEG", quality=95)
    for orientation in range(1, 9):
        yield f"exif{orientation}.jpg", oriented(orientation)
    yield "rgb.png", encoded(rgb, format="PNG")
    yield "rgba.png", encoded(rgba, format="PNG")
    yield "large.png", encoded(picture(300, 200, 3), format="PNG", optimize=True)
    yield "palette.png", encoded(rgb.quantize(20), format="PNG")
    yield "bits.png", encoded(picture(19, 11, 1).convert("1"), format="PNG")
    yield "grey16.png", encoded(Image.frombytes("I;16", (16, 16), bytes(range(256)) * 2), format="PNG")
    frames = [picture(21, 13, 3).quantize(16), picture(13, 21, 3).resize((21, 13)).quantize(16)]
    yield "animated.gif", encoded(frames[0], format="GIF", save_all=True, append_images=frames[1:], transparency=3)
    yield "plain.gif", encoded(frames[0], format="GIF", interlace=0)
    yield "lossy.webp", encoded(rgb, format="WEBP", quality=80)
    yield "lossless.webp", encoded(rgba, format="WEBP", lossless=True, exact=True)
    yield "animated.webp", encoded(rgb, format="WEBP", save_all=True, append_images=[rgb.rotate(180)], lossless=True)


def blended(image):
    if image.mode == "I;16":
        values = [image.getpixel((x, y)) for y in range(image.height) for x in range(image.width)]
        grey = bytes((v + 128) // 257 for v in values)
        return Image.frombytes("L", image.size, grey).convert("RGB")
    if image.mode in ("RGB", "L", "1"):
        return image.convert("RGB")
    if image.mode == "CMYK":  # Pillow has undone Adobe's complement
        data = image.tobytes()
        out = bytearray()
        for i in range(0, len(data), 4):
            k = 255 - data[i + 3]
            out += bytes(((255 - data[i + c]) * k + 127) // 255 for c in range(3))
        return Image.frombytes("RGB", image.size, bytes(out))
    data = image.convert("RGBA").tobytes()
    out = bytearray()
    for i in range(0, len(data), 4):
        a = data[i + 3]
        out += bytes((data[i + c] * a + 253 * (255 - a) + 127) // 255 for c in range(3))
    return Image.frombytes("RGB", image.size, bytes(out))


def text(image):
    return base64.b64encode(image.tobytes()).decode()


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    golden = []
    for name, data in files():
        (OUT / name).write_bytes(data)
        image = blended(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
        entry = {"file": name, "width": image.width, "height": image.height, "padded": []}
        if image.width < 100:
            entry["rgb"] = text(image)
        for size in PADDED.get(name, []):
            padded = ImageOps.pad(image, size, color=(127, 127, 127))
            entry["padded"].append({"width": size[0], "height": size[1], "rgb": text(padded)})
        golden.append(entry)
    lines = ",\n".join(json.dumps(entry) for entry in golden)
    (OUT / "golden.json").write_text(f"[\n{lines}\n]\n")
    print(f"{len(golden)} files, libjpeg-turbo {features.version('libjpeg_turbo')}, libwebp {features.version('webp')}")


if __name__ == "__main__":
    main()
