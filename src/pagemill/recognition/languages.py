"""Which engine reads which language; coverage is derived from the characters an engine knows, never guessed."""

from __future__ import annotations

ALPHABETS: dict[str, str] = {
    # Letters a language needs beyond a-z (Unicode CLDR main exemplar characters, upper case derived);
    # for scripts with thousands of characters, common ones that every engine for the language must know.
    "af": "áâèéêëîïôöûú",
    "ar": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "az": "çəğıöşü",
    "be": "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
    "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "bn": "অআইঈউঊএকখগঘচছজঝটঠডঢতথদধনপফবভমযরলশষসহ",
    "bs": "čćđšž",
    "ca": "àçéèíïóòúü",
    "cs": "áčďéěíňóřšťúůýž",
    "cy": "âêîôûŵŷ",
    "da": "æøå",
    "de": "äöüß",
    "el": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώ",
    "en": "",
    "es": "áéíñóúü",
    "et": "äõöüšž",
    "eu": "ñç",
    "fa": "ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی",
    "fi": "äö",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "ga": "áéíóú",
    "gl": "áéíñóúü",
    "gu": "અઆઇઈઉઊએકખગઘચછજઝટઠડઢતથદધનપફબભમયરલવશષસહ",
    "he": "אבגדהוזחטיכלמנסעפצקרשת",
    "hi": "अआइईउऊएऐओऔकखगघचछजझटठडढतथदधनपफबभमयरलवशषसह",
    "hr": "čćđšž",
    "hu": "áéíóöőúüű",
    "hy": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ",
    "id": "",
    "is": "áðéíóúýþæö",
    "it": "àèéìòù",
    "ja": "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをんアイウエオ日本",
    "ka": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "kk": "аәбвгғдеёжзийкқлмнңоөпрстуұүфхһцчшщъыіьэюя",
    "km": "កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយរលវសហឡអ",
    "kn": "ಅಆಇಈಉಊಎಏಕಖಗಘಚಛಜಝಟಠಡಢತಥದಧನಪಫಬಭಮಯರಲವಶಷಸಹ",
    "ko": "가나다라마바사아자차카타파하이의은는을를에서한국어대회정보",
    "la": "",
    "lo": "ກຂຄງຈຊຍດຕຖທນບປຜຝພຟມຢຣລວສຫອຮ",
    "lt": "ąčęėįšųūž",
    "lv": "āčēģīķļņšūž",
    "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
    "ml": "അആഇഈഉഊഎഏകഖഗഘചഛജഝടഠഡഢതഥദധനപഫബഭമയരലവശഷസഹ",
    "mn": "абвгдеёжзийклмноөпрстуүфхцчшщъыьэюя",
    "mr": "अआइईउऊएऐओऔकखगघचछजझटठडढतथदधनपफबभमयरलवशषसहळ",
    "ms": "",
    "mt": "àċġħż",
    "my": "ကခဂဃငစဆဇဈညတထဒဓနပဖဗဘမယရလဝသဟအ",
    "nb": "æøå",
    "ne": "अआइईउऊएऐओऔकखगघचछजझटठडढतथदधनपफबभमयरलवशषसह",
    "nl": "áéëíïóöúü",
    "no": "æøå",
    "pa": "ਅਆਇਈਉਊਏਕਖਗਘਚਛਜਝਟਠਡਢਤਥਦਧਨਪਫਬਭਮਯਰਲਵਸਹ",
    "pl": "ąćęłńóśźż",
    "pt": "áâãàçéêíóôõú",
    "ro": "ăâîșț",
    "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "sk": "áäčďéíĺľňóôŕšťúýž",
    "sl": "čšž",
    "sq": "çë",
    "sr": "абвгдђежзијклљмнњопрстћуфхцчџш",
    "sv": "åäö",
    "sw": "",
    "ta": "அஆஇஈஉஊஎஏகஙசஞடணதநபமயரலவழளறன",
    "te": "అఆఇఈఉఊఎఏకఖగఘచఛజఝటఠడఢతథదధనపఫబభమయరలవశషసహ",
    "th": "กขคงจฉชซญฐณดตถทธนบปผฝพฟภมยรลวศษสหอ",
    "tl": "ñ",
    "tr": "çğıöşü",
    "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "ur": "ابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنوہھءیے",
    "uz": "",
    "vi": "ăâđêôơưàảãáạằẳẵắặầẩẫấậèẻẽéẹềểễếệìỉĩíịòỏõóọồổỗốộờởỡớợùủũúụừửữứựỳỷỹýỵ",
    "zh": "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动",
}
"""Characters a language needs, by BCP-47 primary subtag."""

_LATIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def languages_covered_by(characters: frozenset[str]) -> frozenset[str]:
    """The languages whose alphabet is wholly among the characters an engine can write."""
    if not characters >= _LATIN:
        return frozenset()
    return frozenset(
        language for language, alphabet in ALPHABETS.items() if characters.issuperset(alphabet + _capitals(alphabet))
    )


def _capitals(alphabet: str) -> str:
    return "".join(upper for upper in (letter.upper() for letter in alphabet) if len(upper) == 1)


TESSDATA_NAMES: dict[str, str] = {
    "af": "afr", "ar": "ara", "az": "aze", "be": "bel", "bg": "bul", "bn": "ben", "bs": "bos", "ca": "cat",
    "cs": "ces", "cy": "cym", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est",
    "eu": "eus", "fa": "fas", "fi": "fin", "fr": "fra", "ga": "gle", "gl": "glg", "gu": "guj", "he": "heb",
    "hi": "hin", "hr": "hrv", "hu": "hun", "hy": "hye", "id": "ind", "is": "isl", "it": "ita", "ja": "jpn",
    "ka": "kat", "kk": "kaz", "km": "khm", "kn": "kan", "ko": "kor", "la": "lat", "lo": "lao", "lt": "lit",
    "lv": "lav", "mk": "mkd", "ml": "mal", "mn": "mon", "mr": "mar", "ms": "msa", "mt": "mlt", "my": "mya",
    "nb": "nor", "ne": "nep", "nl": "nld", "no": "nor", "pa": "pan", "pl": "pol", "pt": "por", "ro": "ron",
    "ru": "rus", "sk": "slk", "sl": "slv", "sq": "sqi", "sr": "srp", "sv": "swe", "sw": "swa", "ta": "tam",
    "te": "tel", "th": "tha", "tl": "fil", "tr": "tur", "uk": "ukr", "ur": "urd", "uz": "uzb", "vi": "vie",
    "zh": "chi_sim",
}  # fmt: skip
"""Tesseract's file name for each language."""
