"""A shop in Django: "setup" makes the schema and its first rows, "traffic" serves requests."""

import os
import random
import sys

import django
from django.apps import AppConfig
from django.conf import settings

E = os.environ
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends." + {"postgres": "postgresql"}.get(E["APP_ENGINE"], "mysql"),
            "HOST": E["APP_HOST"], "PORT": E["APP_PORT"], "USER": E["APP_USER"], "PASSWORD": E["APP_PASSWORD"], "NAME": E["APP_DATABASE"],
        }
    },
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "__main__.Shop"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    SESSION_ENGINE="django.contrib.sessions.backends.db",
    SECRET_KEY="not a secret",
)


class Shop(AppConfig):
    name = "__main__"
    label = "shop"
    path = os.path.dirname(os.path.abspath(__file__))


django.setup()

from django.contrib.auth import authenticate  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.paginator import Paginator  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from django.db.models import Avg, Count, Exists, F, OuterRef, Prefetch, Q, Subquery, Sum  # noqa: E402
from django.utils import timezone  # noqa: E402


class Model(models.Model):
    class Meta:
        abstract = True
        app_label = "shop"


class Category(Model):
    name = models.CharField(max_length=100, unique=True)
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="children")


class Tag(Model):
    name = models.CharField(max_length=50, unique=True)


class Product(Model):
    name = models.CharField(max_length=100, db_index=True)
    sku = models.CharField(max_length=20, unique=True)
    price = models.DecimalField(max_digits=10, decimal_places=2)
    stock = models.IntegerField(default=0)
    active = models.BooleanField(default=True)
    category = models.ForeignKey(Category, on_delete=models.PROTECT, related_name="products")
    tags = models.ManyToManyField(Tag, related_name="products")


class Customer(Model):
    user = models.OneToOneField(User, on_delete=models.CASCADE)
    city = models.CharField(max_length=50, blank=True)
    points = models.IntegerField(default=0)


class Order(Model):
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE, related_name="orders")
    status = models.CharField(max_length=20, default="new", db_index=True)
    total = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    placed = models.DateTimeField(default=timezone.now)


class Item(Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="items")
    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="sold")
    quantity = models.IntegerField()


class Coupon(Model):
    code = models.CharField(max_length=20, unique=True)
    left = models.IntegerField()


class Review(Model):
    product = models.ForeignKey(Product, on_delete=models.CASCADE, related_name="reviews")
    customer = models.ForeignKey(Customer, on_delete=models.SET_NULL, null=True)
    stars = models.IntegerField()
    text = models.TextField(blank=True)


def setup():
    call_command("migrate", run_syncdb=True, verbosity=0)
    with connection.schema_editor() as editor:
        for m in (Category, Tag, Product, Customer, Order, Item, Coupon, Review):
            editor.create_model(m)
    root = Category.objects.create(name="all")
    categories = [Category.objects.create(name="category %d" % i, parent=root) for i in range(5)]
    tags = [Tag.objects.create(name="tag %d" % i) for i in range(8)]
    for i in range(40):
        p = Product.objects.create(name="product %d" % i, sku="S%03d" % i, price=i + 1, stock=100, category=categories[i % 5])
        p.tags.set(tags[i % 4 : i % 4 + 3])
    for i in range(10):
        user = User.objects.create_user("user%d" % i, password=None)
        c = Customer.objects.create(user=user, city="city %d" % (i % 3))
        for k in range(3):
            o = Order.objects.create(customer=c)
            Item.objects.create(order=o, product_id=1 + (i + k) % 40, quantity=1)
    Coupon.objects.create(code="WELCOME", left=1000)


R = random.Random(7)


def product():
    return Product.objects.get(sku="S%03d" % R.randrange(40))


def customer():
    return Customer.objects.select_related("user").get(user__username="user%d" % R.randrange(10))


def login():
    user = User.objects.get(username="user%d" % R.randrange(10))
    user.last_login = timezone.now()
    user.save(update_fields=["last_login"])
    authenticate(username=user.username, password="wrong")
    s = SessionStore()
    s["user"] = user.pk
    s.create()
    s["seen"] = 1
    s.save()
    SessionStore(s.session_key).load()
    if R.random() < 0.3:
        s.delete()


def catalogue():
    found = Product.objects.filter(active=True).select_related("category").order_by("name", "id")
    page = Paginator(found, 10).page(1 + R.randrange(4))
    return [p.category.name for p in page]


def by_tag():
    found = Product.objects.filter(tags__name__in=["tag 1", "tag 2"]).distinct().order_by("-price")
    page = Paginator(found, 5).page(1)
    return list(page)


def search():
    q = "%d" % R.randrange(10)
    return list(Product.objects.filter(Q(name__icontains=q) | Q(sku__startswith="S" + q), stock__gt=0)[:20])


def detail():
    p = Product.objects.select_related("category__parent").prefetch_related("tags", Prefetch("reviews", Review.objects.select_related("customer__user"))).get(pk=product().pk)
    p.reviews.aggregate(Avg("stars"), Count("id"))
    list(p.tags.all())
    return Product.objects.filter(category=p.category).exclude(pk=p.pk).order_by("?")[:0]


def tree():
    return [(c.name, c.n) for c in Category.objects.annotate(n=Count("products")).order_by("name")], list(Category.objects.filter(parent__isnull=True))


def checkout():
    with transaction.atomic():
        c = customer()
        o = Order.objects.create(customer=c)
        total = 0
        for p in Product.objects.select_for_update().filter(sku__in=["S%03d" % i for i in R.sample(range(40), 3)]).order_by("pk"):
            Item.objects.create(order=o, product=p, quantity=1)
            p.stock -= 1
            p.save()
            total += p.price
        o.total = total
        o.save()
        Coupon.objects.filter(code="WELCOME", left__gt=0).update(left=F("left") - 1)
        Customer.objects.filter(pk=c.pk).update(points=F("points") + 1)


def history():
    c = customer()
    orders = c.orders.prefetch_related("items__product").order_by("-placed")[:5]
    return [[i.product.name for i in o.items.all()] for o in orders], c.orders.count(), c.orders.filter(status="new").exists()


def pay():
    o = Order.objects.filter(status="new").order_by("placed").first()
    if o:
        o.status = "paid"
        o.save(update_fields=["status"])


def cancel():
    o = Order.objects.filter(status="new").last()
    if o:
        with transaction.atomic():
            for i in o.items.select_related("product"):
                Product.objects.filter(pk=i.product_id).update(stock=F("stock") + i.quantity)
            o.delete()


def review():
    p, c = product(), customer()
    Review.objects.update_or_create(product=p, customer=c, defaults={"stars": 1 + R.randrange(5)})
    if not Review.objects.filter(product=p, stars=5).exists():
        Review.objects.create(product=p, customer=c, stars=5)


def tagging():
    t, _ = Tag.objects.get_or_create(name="tag %d" % R.randrange(12))
    p = product()
    p.tags.add(t)
    p.tags.remove(t)
    p.tags.set(Tag.objects.filter(name__lt="tag 3"))


def bestsellers():
    return list(Product.objects.annotate(n=Sum("sold__quantity")).filter(n__gt=0).order_by("-n")[:5])


def revenue():
    Order.objects.filter(status="paid").aggregate(Sum("total"), Count("id"))
    return list(Order.objects.values("status").annotate(n=Count("id"), t=Sum("total")).order_by("status"))


def unsold():
    sold = Item.objects.filter(product=OuterRef("pk"))
    return list(Product.objects.filter(~Exists(sold))), list(Product.objects.exclude(sold__quantity__gt=0).values_list("sku", flat=True))


def latest():
    last = Order.objects.filter(customer=OuterRef("pk")).order_by("-placed")
    return list(Customer.objects.annotate(last=Subquery(last.values("status")[:1])))


def within():
    chosen = Category.objects.filter(name__startswith="category").values("pk")
    return list(Product.objects.filter(category__in=chosen, price__lt=10)), list(Order.objects.filter(customer__in=Customer.objects.filter(city="city 1")))


def bulk():
    found = list(Product.objects.filter(price__lt=5))
    for p in found:
        p.stock += 1
    Product.objects.bulk_update(found, ["stock"])
    Review.objects.bulk_create([Review(product=p, stars=3) for p in found])
    Review.objects.filter(stars=3).delete()


def combined():
    cheap, dear = Product.objects.filter(price__lt=3), Product.objects.filter(price__gt=38)
    return list(cheap.union(dear)), list(Product.objects.values_list("category_id", flat=True).distinct())


def nested():
    try:
        with transaction.atomic():
            Coupon.objects.create(code="C%d" % R.randrange(10**9), left=1)
            with transaction.atomic():
                Coupon.objects.create(code="WELCOME", left=1)
    except IntegrityError:
        pass


def profile():
    c = customer()
    c.city = "city %d" % R.randrange(5)
    c.save()
    c.user.email = "a%d@example.com" % R.randrange(100)
    c.user.save()
    return User.objects.filter(email__iexact=c.user.email).exists()


def signup():
    name = "new%d" % R.randrange(10**9)
    if not User.objects.filter(username=name).exists():
        user = User.objects.create(username=name)
        Customer.objects.create(user=user)
        user.refresh_from_db()
        user.delete()



def months():
    return list(Order.objects.dates("placed", "month"))


REQUESTS = [login, catalogue, catalogue, by_tag, search, detail, detail, tree, checkout, checkout, history, pay, cancel, review, tagging, bestsellers,
            revenue, unsold, latest, within, bulk, combined, nested, profile, signup, months]

if __name__ == "__main__":
    if sys.argv[1] == "setup":
        setup()
    else:
        for _ in range(int(E.get("APP_ROUNDS", "10"))):
            for request in REQUESTS:
                request()
                if R.random() < 0.2:
                    connection.close()
