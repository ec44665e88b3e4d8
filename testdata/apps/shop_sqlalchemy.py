"""A shop in SQLAlchemy's ORM: "setup" makes the schema and its first rows, "traffic" serves requests."""

import os
import random
import sys
from datetime import datetime

from sqlalchemy import (Boolean, Column, DateTime, ForeignKey, Integer, Numeric, String, Table, and_, case, create_engine, delete, exists, func, insert,
                        select, text, update)
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, aliased, contains_eager, declarative_base, joinedload, relationship, selectinload, subqueryload

E = os.environ
engine = create_engine(
    URL.create({"postgres": "postgresql+psycopg2"}.get(E["APP_ENGINE"], "mysql+pymysql"), E["APP_USER"], E["APP_PASSWORD"], E["APP_HOST"], int(E["APP_PORT"]),
               E["APP_DATABASE"]),
    pool_pre_ping=True, future=True)
Base = declarative_base()

product_tag = Table(
    "product_tag", Base.metadata,
    Column("product_id", ForeignKey("product.id", ondelete="CASCADE"), primary_key=True), Column("tag_id", ForeignKey("tag.id", ondelete="CASCADE"), primary_key=True))


class Category(Base):
    __tablename__ = "category"
    id = Column(Integer, primary_key=True)
    name = Column(String(100), unique=True, nullable=False)
    parent_id = Column(ForeignKey("category.id", ondelete="CASCADE"))
    parent = relationship("Category", remote_side=[id])
    products = relationship("Product", back_populates="category")


class Tag(Base):
    __tablename__ = "tag"
    id = Column(Integer, primary_key=True)
    name = Column(String(50), unique=True, nullable=False)


class Product(Base):
    __tablename__ = "product"
    id = Column(Integer, primary_key=True)
    name = Column(String(100), nullable=False, index=True)
    sku = Column(String(20), unique=True, nullable=False)
    price = Column(Numeric(10, 2), nullable=False)
    stock = Column(Integer, nullable=False, default=0)
    active = Column(Boolean, nullable=False, default=True)
    category_id = Column(ForeignKey("category.id", ondelete="CASCADE"), nullable=False, index=True)
    category = relationship(Category, back_populates="products")
    tags = relationship(Tag, secondary=product_tag)
    reviews = relationship("Review", back_populates="product", cascade="all, delete-orphan", passive_deletes=True)


class Customer(Base):
    __tablename__ = "customer"
    id = Column(Integer, primary_key=True)
    email = Column(String(100), unique=True, nullable=False)
    city = Column(String(50))
    points = Column(Integer, nullable=False, default=0)
    orders = relationship("Order", back_populates="customer", cascade="all, delete-orphan", passive_deletes=True)


class Order(Base):
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True)
    customer_id = Column(ForeignKey("customer.id", ondelete="CASCADE"), nullable=False, index=True)
    status = Column(String(20), nullable=False, default="new", index=True)
    total = Column(Numeric(10, 2), nullable=False, default=0)
    placed = Column(DateTime, nullable=False, default=datetime.utcnow)
    version = Column(Integer, nullable=False)
    customer = relationship(Customer, back_populates="orders")
    items = relationship("Item", back_populates="order", cascade="all, delete-orphan")
    __mapper_args__ = {"version_id_col": version}


class Item(Base):
    __tablename__ = "item"
    id = Column(Integer, primary_key=True)
    order_id = Column(ForeignKey("orders.id", ondelete="CASCADE"), nullable=False, index=True)
    product_id = Column(ForeignKey("product.id", ondelete="CASCADE"), nullable=False, index=True)
    quantity = Column(Integer, nullable=False)
    order = relationship(Order, back_populates="items")
    product = relationship(Product)


class Coupon(Base):
    __tablename__ = "coupon"
    id = Column(Integer, primary_key=True)
    code = Column(String(20), unique=True, nullable=False)
    uses_left = Column(Integer, nullable=False)


class Review(Base):
    __tablename__ = "review"
    id = Column(Integer, primary_key=True)
    product_id = Column(ForeignKey("product.id", ondelete="CASCADE"), nullable=False, index=True)
    customer_id = Column(ForeignKey("customer.id", ondelete="SET NULL"), index=True)
    stars = Column(Integer, nullable=False)
    product = relationship(Product, back_populates="reviews")
    customer = relationship(Customer)


def setup():
    Base.metadata.create_all(engine)
    with Session(engine) as s, s.begin():
        root = Category(name="all")
        categories = [Category(name="category %d" % i, parent=root) for i in range(5)]
        tags = [Tag(name="tag %d" % i) for i in range(8)]
        products = [Product(name="product %d" % i, sku="S%03d" % i, price=i + 1, stock=100, category=categories[i % 5], tags=tags[i % 4 : i % 4 + 3]) for i in range(40)]
        s.add_all(products)
        for i in range(10):
            c = Customer(email="user%d@example.com" % i, city="city %d" % (i % 3))
            s.add_all([c] + [Order(customer=c, items=[Item(product=products[i + k], quantity=1)]) for k in range(3)])
        s.add(Coupon(code="WELCOME", uses_left=1000))


R = random.Random(7)


def product(s):
    return s.execute(select(Product).where(Product.sku == "S%03d" % R.randrange(40))).scalar_one()


def customer(s):
    return s.execute(select(Customer).where(Customer.email == "user%d@example.com" % R.randrange(10))).scalar_one()


def catalogue(s):
    found = select(Product).options(joinedload(Product.category)).where(Product.active)
    s.execute(select(func.count()).select_from(select(Product.id).where(Product.active).subquery())).scalar()
    list(s.execute(found.order_by(Product.name, Product.id).limit(10).offset(10 * R.randrange(4))).scalars())


def legacy_count(s):
    s.query(Product).filter(Product.price > 3).count()
    s.query(Order).join(Order.customer).filter(Customer.city == "city 1").count()


def by_tag(s):
    list(s.execute(select(Product).join(Product.tags).where(Tag.name.in_(["tag 1", "tag 2"])).distinct().order_by(Product.price).limit(5)).scalars())
    list(s.execute(select(Product).where(Product.tags.any(Tag.name == "tag 1"))).scalars())


def search(s):
    q = "%d" % R.randrange(10)
    list(s.execute(select(Product).where(Product.name.ilike("%" + q + "%"), Product.stock > 0).limit(20)).scalars())


def detail(s):
    p = s.execute(select(Product).options(joinedload(Product.category).joinedload(Category.parent), selectinload(Product.tags),
                                          selectinload(Product.reviews).joinedload(Review.customer)).where(Product.id == product(s).id)).scalar_one()
    s.execute(select(func.avg(Review.stars), func.count(Review.id)).where(Review.product_id == p.id)).one()


def collections(s):
    list(s.execute(select(Order).options(joinedload(Order.items)).limit(5).order_by(Order.id)).unique().scalars())
    list(s.execute(select(Category).options(subqueryload(Category.products)).where(Category.name == "category 1")).scalars())


def tree(s):
    list(s.execute(select(Category.name, func.count(Product.id)).outerjoin(Product).group_by(Category.id, Category.name).order_by(Category.name)))
    list(s.execute(select(Category).where(Category.parent_id.is_(None))).scalars())


def checkout(s):
    c = customer(s)
    o = Order(customer=c)
    s.add(o)
    chosen = ["S%03d" % i for i in R.sample(range(40), 3)]
    for p in s.execute(select(Product).where(Product.sku.in_(chosen)).order_by(Product.id).with_for_update()).scalars():
        o.items.append(Item(product=p, quantity=1))
        p.stock -= 1
        o.total = (o.total or 0) + p.price
    s.execute(update(Coupon).where(Coupon.code == "WELCOME", Coupon.uses_left > 0).values(uses_left=Coupon.uses_left - 1).execution_options(synchronize_session=False))
    c.points = Customer.points + 1


def history(s):
    c = customer(s)
    for o in s.execute(select(Order).options(selectinload(Order.items).joinedload(Item.product)).where(Order.customer == c).order_by(Order.placed.desc()).limit(5)).scalars():
        [i.product.name for i in o.items]
    s.execute(select(func.count()).select_from(Order).where(Order.customer_id == c.id)).scalar()
    s.execute(select(exists().where(Order.customer_id == c.id, Order.status == "new"))).scalar()


def pay(s):
    o = s.execute(select(Order).where(Order.status == "new").order_by(Order.placed).limit(1)).scalars().first()
    if o:
        o.status = "paid"


def cancel(s):
    o = s.execute(select(Order).where(Order.status == "new").order_by(Order.id.desc()).limit(1)).scalars().first()
    if o:
        for i in o.items:
            i.product.stock += i.quantity
        s.delete(o)


def review(s):
    p, c = product(s), customer(s)
    r = s.execute(select(Review).where(Review.product_id == p.id, Review.customer_id == c.id)).scalars().first()
    if r is None:
        s.add(Review(product=p, customer=c, stars=3))
    else:
        r.stars = 1 + r.stars % 5


def tagging(s):
    p = product(s)
    tags = list(s.execute(select(Tag).where(Tag.name < "tag 5")).scalars())
    p.tags = R.sample(tags, 2)


def bestsellers(s):
    sold = select(Item.product_id, func.sum(Item.quantity).label("n")).group_by(Item.product_id).subquery()
    list(s.execute(select(Product, sold.c.n).join(sold, sold.c.product_id == Product.id).order_by(sold.c.n.desc()).limit(5)))
    list(s.execute(select(Product.name, func.sum(Item.quantity)).join(Item).group_by(Product.name).having(func.sum(Item.quantity) > 1)))


def revenue(s):
    s.execute(select(func.sum(Order.total), func.count(Order.id)).where(Order.status == "paid")).one()
    list(s.execute(select(Order.status, func.count(), func.sum(case((Order.total > 10, 1), else_=0))).group_by(Order.status)))


def unsold(s):
    list(s.execute(select(Product).where(~exists().where(Item.product_id == Product.id))).scalars())
    list(s.execute(select(Product).where(Product.id.not_in(select(Item.product_id)))).scalars())


def latest(s):
    last = select(func.max(Order.placed)).where(Order.customer_id == Customer.id).scalar_subquery()
    list(s.execute(select(Customer, last)))
    o = aliased(Order)
    list(s.execute(select(Order).outerjoin(o, and_(o.customer_id == Order.customer_id, o.id > Order.id)).where(o.id.is_(None))).scalars())


def cte(s):
    big = select(Order.customer_id, func.sum(Order.total).label("t")).group_by(Order.customer_id).cte("big")
    list(s.execute(select(Customer.email, big.c.t).join(big, big.c.customer_id == Customer.id)))


def eager(s):
    list(s.execute(select(Order).join(Order.customer).options(contains_eager(Order.customer)).where(Customer.city == "city 1")).scalars())
    list(s.execute(select(Order.id, Customer.email).join(Customer)))


def bulk(s):
    s.execute(update(Product).where(Product.price < 5).values(stock=Product.stock + 1).execution_options(synchronize_session=False))
    s.execute(insert(Review), [{"product_id": 1 + i, "stars": 2} for i in range(3)])
    s.execute(delete(Review).where(Review.stars == 2).execution_options(synchronize_session=False))


def upsert(s):
    if E["APP_ENGINE"] == "postgres":
        from sqlalchemy.dialects.postgresql import insert as upsert
        q = upsert(Coupon).values(code="C%d" % R.randrange(5), uses_left=1)
        s.execute(q.on_conflict_do_update(index_elements=["code"], set_={"uses_left": Coupon.uses_left + 1}))
        s.execute(upsert(Tag).values(name="tag 1").on_conflict_do_nothing())
    else:
        from sqlalchemy.dialects.mysql import insert as upsert
        q = upsert(Coupon).values(code="C%d" % R.randrange(5), uses_left=1)
        s.execute(q.on_duplicate_key_update(uses_left=Coupon.uses_left + 1))
        s.execute(upsert(Tag).values(name="tag 1").prefix_with("IGNORE"))


def combined(s):
    list(s.execute(select(Product.id).where(Product.price < 3).union(select(Product.id).where(Product.price > 38))))
    list(s.execute(select(Product.category_id).distinct()))


def nested(s):
    s.add(Coupon(code="N%d" % R.randrange(10**9), uses_left=1))
    s.flush()
    try:
        with s.begin_nested():
            s.add(Coupon(code="WELCOME", uses_left=1))
    except IntegrityError:
        pass


def by_hand(s):
    s.execute(text("SELECT id, name FROM product WHERE price BETWEEN :a AND :b ORDER BY id"), {"a": 3, "b": 9}).all()
    s.execute(text("UPDATE product SET stock = stock + 1 WHERE id IN (SELECT product_id FROM item WHERE quantity > 5)"))


def signup(s):
    email = "new%d@example.com" % R.randrange(10**9)
    if s.execute(select(Customer.id).where(Customer.email == email).limit(1)).first() is None:
        c = Customer(email=email)
        s.add(c)
        s.flush()
        s.refresh(c)
        s.delete(c)


REQUESTS = [catalogue, catalogue, legacy_count, by_tag, search, detail, detail, collections, tree, checkout, checkout, history, pay, cancel, review, tagging,
            bestsellers, revenue, unsold, latest, cte, eager, bulk, upsert, combined, nested, by_hand, signup]

if __name__ == "__main__":
    if sys.argv[1] == "setup":
        setup()
    else:
        for _ in range(int(E.get("APP_ROUNDS", "10"))):
            for request in REQUESTS:
                with Session(engine) as s, s.begin():
                    request(s)
