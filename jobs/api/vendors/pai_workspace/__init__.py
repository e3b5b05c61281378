"""The PAI workspace service (version 2021-02-04), as Alibaba's SDK calls it."""
