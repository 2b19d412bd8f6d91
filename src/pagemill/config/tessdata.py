"""Tesseract's language data that ``pagemill models download tessdata:NAME`` fetches."""

from __future__ import annotations

PREFIX = "tessdata:"
"""Before Tesseract's name of a language: the name of a model."""
URL = "https://github.com/tesseract-ocr/tessdata_fast/raw/4.1.0/{}.traineddata"
FILES: dict[str, tuple[int, str]] = {
    "amh": (5_470_094, "3ec3311833a108e07d58a1152b00c0cf1848752e4f85769d46e8ca2b718a2ccc"),
    "ara": (1_432_056, "e3206d3dc87fd50c24a0fb9f01838615911d25168f4e64415244b67d2bb3e729"),
    "ben": (855_841, "31163084c279aaebd376216f0c3d5c17ad4b5fee8db49dae79c20000b5de5964"),
    "ell": (1_419_514, "4fba8a0b461038d51f1c20d043d4f2ac38c4e778f1b90830847f7bd8fa3ba726"),
    "guj": (1_418_394, "fa69658614b4946a9afae8853d67e0689838803dfa3d12c2e35ec53ee6f8df34"),
    "heb": (961_404, "11f9e43ab227f786352a50f75c94c2e9906f1baba86d93276da19da7ce0904db"),
    "hin": (1_122_751, "4c73ffc59d497c186b19d1e90f5d721d678ea6b2e277b719bee4e2af12271825"),
    "hye": (3_463_717, "b701d0d95799a716143dedb0197504e56f27a1bb133d6607ff5778c6988cb67c"),
    "kan": (3_608_331, "bd31e6b6ae93271e3bcf5383d306d8eefbb91542937cd6d735a5930c970e61d8"),
    "kat": (2_524_769, "557abb6f1c68bc1b286f1bdd00bb6b82f85a427a91899807dab6c2f6c7986731"),
    "khm": (1_446_926, "47f110575341b322052f3becbefee61a3ecf1ef549352b5d4d33d28afe30d099"),
    "lao": (6_386_744, "20124962e93e68121e02c49a949d1f9df5db87dd62e5e4aa578362ca532444f8"),
    "mal": (5_275_996, "bd05cbf1b197e7810d2903419aedb06f9ef77bfedf50b358673c1d18d707cdb4"),
    "mya": (4_640_561, "02aa6c25cfe9e583fa7b5d4131eac948f962308983f0f397df077dea58212b03"),
    "pan": (497_721, "1ec0907fc3534065ea9ae190c6bb7ec9e5c74fd9d2fa996aaec7407f11ad8131"),
    "rus": (3_861_738, "e16e5e036cce1d9ec2b00063cf8b54472625b9e14d893a169e2b0dedeb4df225"),
    "sin": (1_727_413, "bc75c6df2375a30c9f7e759fa7d4b58ae3ecf9ce72668a702d01acb13e551422"),
    "tam": (3_237_963, "d02fbec24be4b07e32e80d0ccfc3b6b67a3c5d61c9d0a7c8532677990912c6ec"),
    "tel": (2_769_654, "d10691fddd5b67802e1c12800ebb321d3b8bcd8d24a2ac3ff206f93188c04ab5"),
    "tha": (1_072_600, "294227cc2d1292b0acb28d61d4115c88252b96d466ca90b417cf4cf0c67bf07c"),
    "vie": (531_275, "79df64caf7bcfb2a27df5042ecb6121e196eada34da774956995747636d5bfa1"),
}
"""Bytes and sha256 by Tesseract's name: a language of each script for which there is no embedded engine."""
