"""Tables without pandas, which takes longer to load than a small capture to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Labels:
    """A column of texts that repeat: each row has a place among `names`, -1 for none."""

    codes: Array
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Labels:
        return Labels(self.codes[rows], self.names)

    def texts(self) -> list[str]:
        """The rows' texts."""
        return [self.names[code] if code >= 0 else "" for code in self.codes.tolist()]


Column = Array | Labels
Table = Mapping[str, Column]  # all of one length


def constant(text: str, rows: int) -> Labels:
    """The same text in all rows."""
    return Labels(np.zeros(rows, np.int8), (text,))


def rows_of(table: Table) -> int:
    """How many rows a table has."""
    return max(map(len, table.values()), default=0)


def frame_of(table: Table) -> pd.DataFrame:
    """A table for pandas, texts as categories."""
    import pandas as pd

    def series(column: Column) -> Any:
        if not isinstance(column, Labels):
            return column
        names = pd.Index(list(column.names), dtype="str")
        return pd.Categorical.from_codes(column.codes, categories=names)

    return pd.DataFrame({name: series(column) for name, column in table.items()}, copy=False)


def table_of(frame: pd.DataFrame) -> Table:
    """A table from pandas."""

    def column(values: pd.Series[Any]) -> Column:
        if values.dtype == "category":
            return Labels(values.cat.codes.to_numpy(), tuple(map(str, values.cat.categories)))
        if values.dtype.kind in "biuf":
            return values.to_numpy()
        codes, names = values.factorize()
        return Labels(codes, tuple(map(str, names)))

    return {str(name): column(frame[name]) for name in frame.columns}
