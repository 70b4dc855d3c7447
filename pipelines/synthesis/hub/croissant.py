"""Writes croissant.json: MLCommons' description of the table, for tools that know no such folder.

The classes' names are a record set of their own. A date is left out, because it would make other
bytes of the same images.
"""

import json
from pathlib import Path

from pipelines.datasets.labelled_images import Images
from pipelines.files import sha256
from pipelines.synthesis import card_text
from pipelines.synthesis.hub import features, licences

VERSION = "http://mlcommons.org/croissant/1.1"
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def text(description: dict, data: Images, folder: Path, table: str) -> str:
    """Returns the content of croissant.json.

    Args:
        description: The card, from `export.card`.
        data: The synthetic images.
        folder: The folder of the table.
        table: The table's name in it. Its sum is stated.
    """
    words = description["datasheet"]["source_licence"]
    spdx = licences.of(words).spdx
    metadata = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": description["name"].replace("/", "-"),
        "description": "\n".join(card_text.promise(description)),
        "conformsTo": VERSION,
        "license": f"https://spdx.org/licenses/{spdx}.html" if spdx else words,
        "version": "1.0.0",
        "keywords": ["synthetic", "image-classification"],
        "isLiveDataset": False,
        "distribution": [_file(folder, table)],
        "recordSet": [
            _classes(card_text.class_names(description)),
            _records(list(data.images.shape[1:])),
        ],
    }
    return json.dumps(metadata, indent=1, ensure_ascii=False) + "\n"


def _file(folder: Path, table: str) -> dict:
    return {
        "@type": "cr:FileObject",
        "@id": "table",
        "name": "table",
        "contentUrl": table,
        "encodingFormat": "application/x-parquet",
        "sha256": sha256(folder / table),
    }


def _classes(names: list[str]) -> dict:
    """Returns the record set of the classes, whose records stand in it."""
    records = []
    for label, name in enumerate(names):
        records.append({"classes/label": label, "classes/name": name})
    return {
        "@type": "cr:RecordSet",
        "@id": "classes",
        "name": "classes",
        "dataType": "sc:Enumeration",
        "key": {"@id": "classes/label"},
        "field": [
            {"@type": "cr:Field", "@id": "classes/label", "dataType": "sc:Integer"},
            {"@type": "cr:Field", "@id": "classes/name", "dataType": "sc:Text"},
        ],
        "data": records,
    }


def _records(shape: list[int]) -> dict:
    """Returns the record set of the images and their labels."""
    image = {
        "@type": "cr:Field",
        "@id": "images/image",
        "dataType": "sc:ImageObject",
        "source": {
            "fileObject": {"@id": "table"},
            "extract": {"column": "image"},
            "transform": {"jsonPath": "bytes"},
        },
    }
    if not features.is_picture(shape):
        image |= {
            "dataType": "cr:UInt8",
            "isArray": True,
            "arrayShape": ",".join(map(str, shape)),
            "source": {"fileObject": {"@id": "table"}, "extract": {"column": "image"}},
        }
    label = {
        "@type": "cr:Field",
        "@id": "images/label",
        "dataType": "sc:Integer",
        "references": {"field": {"@id": "classes/label"}},
        "source": {"fileObject": {"@id": "table"}, "extract": {"column": "label"}},
    }
    return {"@type": "cr:RecordSet", "@id": "images", "name": "images", "field": [image, label]}
