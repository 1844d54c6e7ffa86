"""SQLAlchemy's object mapping over SQLite, in memory, in a file, and from threads."""

import concurrent.futures
import os
import tempfile

import sqlalchemy as sa
from sqlalchemy import orm


class Base(orm.DeclarativeBase):
    pass


class Owner(Base):
    __tablename__ = "owner"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(30), unique=True)
    pets: orm.Mapped[list["Pet"]] = orm.relationship(back_populates="owner", cascade="all, delete-orphan")


class Pet(Base):
    __tablename__ = "pet"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str]
    owner_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("owner.id"))
    owner: orm.Mapped[Owner] = orm.relationship(back_populates="pets")


def exercise(url):
    engine = sa.create_engine(url)
    Base.metadata.create_all(engine)
    with orm.Session(engine) as session:
        session.add_all([Owner(name=name, pets=[Pet(name=pet) for pet in pets.split()]) for name, pets in (("a", "x y"), ("é", "z"))])
        session.commit()
        counts = sa.select(Owner.name, sa.func.count(Pet.id)).join(Pet).group_by(Owner.name).order_by(Owner.name)
        yield session.execute(counts).all()
        session.delete(session.scalars(sa.select(Owner).where(Owner.name == "a")).one())
        session.commit()
        yield session.scalars(sa.select(Pet.name)).all()
        session.add(Owner(name="é"))
        try:
            session.commit()
        except sa.exc.IntegrityError as error:
            yield str(error.orig)
    engine.dispose()


print(list(exercise("sqlite://")))
with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(3) as pool:
    print(list(pool.map(lambda i: list(exercise("sqlite:///%s/%d.db" % (folder, i))), range(3))))
print(sa.text("select :a").bindparams(a=1).compile(compile_kwargs={"literal_binds": True}))
print(os.readlink("/proc/self/exe"))
